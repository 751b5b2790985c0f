"""From the results of all runs to what people read: tables, figures and the HTML report.

On this way a score has four forms. `MetricValue` (scoring/metric.py) is what scores.json has of one
run. `MetricRow` (results_file.py) adds the difference from the baseline and its p-values, and is a
row of results.json. `ScoreRow` (score_frame.py) is the mean over seeds, with the texts that tables
show. `Cell` (table.py) is the score in a table, ready to be printed.

May import the packages from runtime to serving.
"""
