"""Experiments of papers, run again: one file each."""
