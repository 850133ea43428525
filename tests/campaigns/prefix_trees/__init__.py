"""Optimises random prefix trees and trees with a wrong bound, and compares the results."""
