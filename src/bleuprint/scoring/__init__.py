"""sacreBLEU and the statistics of scores.

May import the packages from runtime to decoding.
"""
