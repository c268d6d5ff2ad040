"""JSON in and out: fields, paging, errors, the OpenAPI document."""
