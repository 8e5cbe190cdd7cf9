"""One type for everything that is looked at: it shows itself in a notebook and saves one offline HTML or SVG file."""

from maskery.picture.markup import Markup, table
from maskery.picture.page import Picture, report, require_place

__all__ = ["Markup", "Picture", "report", "require_place", "table"]
