"""Methods behind several operators: approximations, bounds, comparisons, and sorting."""
