"""Tables 1 to 5 of Jawanpuria, Nath and Ramakrishnan (2015), with the data sets they are about."""

from __future__ import annotations

from dataclasses import dataclass

BINARY_COLUMNS = ("RuleFit", "SLIPPER", "ENDER", "HKL-l1", "rho=2", "rho=1.5", "rho=1.1")
CLASS_COLUMNS = ("SLIPPER", "ENDER", "rho=2", "rho=1.5", "rho=1.1")


@dataclass(frozen=True)
class Published:
    """One entry: a score, and the number and mean length of the rules."""

    score: float  # F1 of both classes averaged in Table 2, accuracy in Table 4
    rules: float
    length: float
    auc: float | None = None  # Table 5


@dataclass(frozen=True)
class Shape:
    """Rows and propositions of a set as printed in Tables 1 and 3."""

    n_rows: int
    n_propositions: int


# Data sets by the name that `load_dataset` knows; the names in the tables are the short ones.
TITLES = {
    "tic_tac_toe": "TIC",
    "breast_cancer_wisconsin": "BCW",
    "pima_diabetes": "DIA",
    "haberman": "HAB",
    "heart_c_weka": "HTC",
    "blood_transfusion": "BLD",
    "heart_statlog": "HTS",
    "monks3": "MK3",
    "vote": "VTE",
    "breast_cancer_ljubljana": "BCC",
    "mammographic_mass": "MAM",
    "liver_bupa": "LIV",
    "balance_scale": "BALANCE",
    "car": "CAR",
    "cmc": "CMC",
    "ecoli": "ECOLI",
    "glass": "GLASS",
    "iris": "IRIS",
    "lymph": "LYMPH",
    "tae": "TAE",
    "yeast": "YEAST",
    "zoo": "ZOO",
}
BINARY, CLASSES = tuple(TITLES)[:12], tuple(TITLES)[12:]

# Tables 1 and 2: rows, propositions, then score (rules, length) by the columns above.
_TABLE_2 = """
TIC 958 54 .517(57.7,2.74) .665(10.3,1.96) .668(187,3.17) .749(74.8,1.89) .889(161.7,1.72) .897(186.6,1.76) .905(157.6,1.72)
BCW 699 72 .879(17.5,2.03) .928(4.4,1.15) .900(21,1.56) .925(27,1.03) .923(30.9,1) .924(20,1.03) .925(20.4,1.02)
DIA 768 64 .428(32.9,2.66) .659(4.9,1.42) .656(74,2.65) .658(47.6,1.40) .661(83.2,1.31) .663(73.2,1.17) .661(62.6,1.27)
HAB 306 40 .175(7.5,1) .483(2.1,1) .474(52,3.59) .506(45.6,1.48) .523(112.1,1.37) .521(51.2,1.24) .521(17.1,1.14)
HTC 296 78 .581(8.8,1) .727(3.2,1.23) .724(32,2.05) .750(32.9,1.09) .743(46.7,1.06) .735(23.9,1) .736(32,1.09)
BLD 748 32 .163(40.7,2.26) .476(2,1) .433(63,1.97) .572(175.9,2.13) .586(229.7,1.98) .587(62.8,1.79) .588(19,1.29)
HTS 270 76 .582(9.3,1) .721(3.5,1.07) .713(25,2.02) .752(24.6,1.06) .747(34.7,1.02) .746(25,1.02) .747(24.4,1.03)
MK3 554 30 .947(52,2.88) .802(1,3) .972(93,1.96) .972(17,1.88) .972(200,2.07) .972(93,1.84) .972(7,1.43)
VTE 232 32 .913(2.7,1) .935(1.3,1.15) .951(9,1.07) .927(23.5,1.17) .930(39,1.11) .929(8.2,1) .934(6.4,1)
BCC 277 76 .254(8.1,1) .476(1.2,1) .452(31,2.93) .588(33.6,1.17) .565(39.6,1.15) .563(30.2,1.07) .569(29.4,1.17)
MAM 829 46 .668(26.4,2.68) .808(5.3,1.43) .816(48,2.53) .805(38.7,1.32) .796(92.2,1.27) .796(47.6,1.24) .797(40.5,1.25)
LIV 345 48 .357(10,1) .445(1.5,1) .563(59,2.35) .585(43.4,1.56) .594(242.5,1.42) .595(58.2,1.32) .588(45.7,1.36)
"""  # noqa: E501

# Tables 3 and 4.
_TABLE_4 = """
BALANCE 625 32 .758(10.4,1.7) .795(112,2.4) .817(2468.9,2.84) .808(112,1.64) .807(85,1.61)
CAR 1728 42 .823(18.3,2.93) .835(270,3.05) .864(9571.2,3.14) .860(220.3,1.64) .875(269.3,1.85)
CMC 1473 54 .446(21.1,1.9) .485(513,4.36) .472(10299.3,2.85) .463(512.9,1.95) .465(396.4,1.88)
ECOLI 332 42 .726(7.8,1.34) .636(35,2.15) .779(4790.2,2.99) .784(34.3,1.05) .778(32.4,1.16)
GLASS 214 72 .430(7.4,1.41) .465(70,3.21) .501(5663.7,2.40) .525(69.1,1.15) .524(54.6,1.04)
IRIS 150 50 .766(2.2,1.02) .835(10,1.34) .913(567,2.44) .927(9.8,1) .893(8.6,1)
LYMPH 146 86 .610(2.7,1) .706(34,2.2) .709(4683.8,2.30) .724(33.7,1.01) .722(33,1.01)
TAE 151 114 .334(1.1,1) .410(39,1.86) .418(5707.4,2.25) .399(38.3,1.00) .402(38.1,1.05)
YEAST 1484 54 .478(23.4,1.63) .497(218,5.78) .487(8153.6,2.85) .485(217.8,1.80) .486(179.6,1.73)
ZOO 101 42 .556(7.1,1.24) .938(33,1.29) .877(3322.2,2.70) .928(32.3,1.00) .927(31.9,1.01)
"""

_TABLE_5 = """
TIC .736 .482 .783 .836 .967 .973 .975
BCW .941 .917 .958 .981 .984 .930 .930
DIA .670 .576 .761 .746 .766 .733 .636
HAB .537 .170 .575 .524 .556 .482 .383
HTC .764 .541 .805 .802 .837 .763 .753
BLD .546 .175 .680 .660 .667 .634 .519
HTS .765 .712 .801 .825 .849 .830 .811
MK3 .972 .632 .998 .995 1 .998 .957
VTE .955 .919 .965 .977 .972 .948 .945
BCC .578 .469 .622 .627 .637 .576 .513
MAM .818 .763 .887 .866 .882 .850 .839
LIV .607 .093 .619 .619 .623 .583 .565
"""


def _read(cell: str, auc: str | None = None) -> Published:
    score, rest = cell.split("(")
    rules, length = rest.rstrip(")").split(",")
    return Published(float(score), float(rules), float(length), None if auc is None else float(auc))


def _lines(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def read_tables() -> dict[tuple[str, str], Published]:
    """Return the entries by short name of the data set and name of the column."""
    areas = {title: row for title, *row in _lines(_TABLE_5)}
    entries = {}
    for title, _, _, *cells in _lines(_TABLE_2):
        for column, cell, auc in zip(BINARY_COLUMNS, cells, areas[title], strict=True):
            entries[title, column] = _read(cell, auc)
    for title, _, _, *cells in _lines(_TABLE_4):
        for column, cell in zip(CLASS_COLUMNS, cells, strict=True):
            entries[title, column] = _read(cell)
    return entries


def read_shapes() -> dict[str, Shape]:
    """Return rows and propositions by the short name of the data set."""
    rows = _lines(_TABLE_2) + _lines(_TABLE_4)
    return {title: Shape(int(n), int(p)) for title, n, p, *_ in rows}
