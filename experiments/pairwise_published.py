"""Numbers of Yang, Jin and Jain (IEEE SSP 2012): Table 2, mean and deviation of NMI, 5 trials."""

TABLE_2 = {
    "cora": {
        "lk": (0.1769, 0.0),
        "skl": (0.1296, 0.005),
        "npk": (0.0161, 0.001),
        "gdm": (0.2306, 0.010),
        "itml": (0.1668, 0.002),
        "mpck": (0.0352, 0.005),
        "lkcnpc": (0.3107, 0.025),
    },
    "citeseer": {
        "lk": (0.2029, 0.0),
        "skl": (0.2153, 0.010),
        "npk": (0.0072, 0.0005),
        "gdm": (0.2669, 0.007),
        "itml": (0.2064, 0.002),
        "mpck": (0.0563, 0.001),
        "lkcnpc": (0.2902, 0.013),
    },
}
