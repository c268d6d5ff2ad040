"""A whole company as a folder of readable text, and back.

    exporting ─► layout, mail ─► text ─► tar
    tar ─► folder ─► fields ─► reading, mail ─► plan ─► checking ─► importing

`layout` and `mail` say how each thing is written down, `text` and `tar` in what form it travels.
`reading` and `mail` look at each part by itself and make a `plan`; `checking` and `checking_mail`
look at how the parts fit. What must never leave is in `remit.services.redaction`.
"""
