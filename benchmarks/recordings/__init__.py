"""Recordings: are snippets found, and what else is?"""
