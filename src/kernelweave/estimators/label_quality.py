class LabelQuality:
    pass
