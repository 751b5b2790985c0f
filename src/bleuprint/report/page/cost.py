"""The section of cost: what each training took, counted and measured."""

from bleuprint.report import main_table
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section, paragraphs


def cost(context: ReportContext) -> Section:
    data = {"grid": main_table.costs(context.records), "explained": paragraphs("cost.md")}
    return Section("cost", "Cost", data)
