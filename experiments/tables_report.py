def to_markdown(*a):
    return ""
