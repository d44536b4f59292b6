"""The restaurant franchise: arms are restaurants whose tables order from one menu of dishes (Teh et al. 2006)."""
