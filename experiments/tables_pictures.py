def draw(*a):
    return []
