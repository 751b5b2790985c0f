"""The section of cost: what each training took, counted and measured."""

from bleuprint.report import cost_columns, main_table
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section


def cost(context: ReportContext) -> Section:
    explained = cost_columns.EXPLAINED.split("\n\n")
    data = {"grid": main_table.costs(context.records), "explained": explained}
    return Section("cost", "Cost", data)
