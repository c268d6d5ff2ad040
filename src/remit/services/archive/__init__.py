"""A whole company as a folder of readable text, and back.

`exporting` writes it down and `importing` reads it again. What the two share is the layout of the
folder (`layout`), its text format (`text`), the tar in which it travels (`tar`), and what must
never leave (`secrets`).
"""
