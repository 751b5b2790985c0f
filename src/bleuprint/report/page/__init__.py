"""The report page: reports/index.html, one file that shows all an experiment has found."""
