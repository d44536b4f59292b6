"""Numerics compiled by Numba: arrays in, arrays out."""
