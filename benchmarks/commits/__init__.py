"""Times, memory and gaps of some tasks over the commits of the repository, measured by asv."""
