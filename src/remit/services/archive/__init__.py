"""A whole company as a folder of readable text, and back.

    exporting ─► layout, mail ─► text ─► tar
    tar ─► fields ─► reading, mail ─► plan ─► checking ─► importing

`layout` and `mail` declare how each thing is written, `text` and `tar` are the formats. `reading`
and `mail` validate each part by itself and build a `plan`; `checking` and `mail` check the whole.
Secrets are removed by `remit.services.redaction`.
"""
