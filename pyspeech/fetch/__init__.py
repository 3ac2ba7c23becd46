"""Packages of human recordings and of engines: downloaded once, unpacked, verified."""
