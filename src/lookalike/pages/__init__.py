"""What a web page says: its main text, title, language and links, without what surrounds them.

Pages are parsed by Resiliparse in processes of their own (`workers`), because a page comes from
anybody: one that takes too long, too much memory, or the parser down, is left out, and says why.
"""

from lookalike.pages.limits import PageLimits
from lookalike.pages.page import FIELDS, Page, RawPage, Refused

__all__ = ["FIELDS", "Page", "PageLimits", "RawPage", "Refused"]
