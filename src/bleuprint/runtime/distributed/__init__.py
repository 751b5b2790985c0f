"""The processes that train one model: how they start, find one another and communicate.

`launch` starts them, `ranks` reads which of them a process is, `store` and `rendezvous` let them
meet, and `group` is what training code uses.
"""
