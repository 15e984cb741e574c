"""Policies that can be trained."""
