"""The processes that train one model: how they start, find one another and communicate."""
