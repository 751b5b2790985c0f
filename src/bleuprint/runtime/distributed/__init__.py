"""The processes that train one model: how they start, meet and communicate."""
