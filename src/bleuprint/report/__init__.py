"""From results to what people read: records, tables, the page.

May import the packages from runtime to serving.
"""
