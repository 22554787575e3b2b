"""Names of colours."""

HEX = {
    "aqua": "00FFFF",
    "black": "000000",
    "blue": "0000FF",
    "cyan": "00FFFF",
    "gold": "FFD700",
    "gray": "808080",
    "green": "008000",
    "grey": "808080",
    "lime": "00FF00",
    "magenta": "FF00FF",
    "maroon": "800000",
    "navy": "000080",
    "olive": "808000",
    "orange": "FFA500",
    "pink": "FFC0CB",
    "purple": "800080",
    "red": "FF0000",
    "silver": "C0C0C0",
    "teal": "008080",
    "white": "FFFFFF",
    "yellow": "FFFF00",
}


def rgb(name):
    """Returns a colour in the form that observations use."""
    return "rgb({},{},{})".format(*bytes.fromhex(HEX[name]))
