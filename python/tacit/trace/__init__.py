"""Recording of a run: what each module and operator took, shown as a page."""
