"""Policies for fields: typing, dates, sliders, spinners, forms, tables."""

import re

from colours import HEX
from view import step

ORDINALS = {"1st": 0, "2nd": 1, "3rd": 2}


def type_quoted(view):
    """Types the quoted text into every text field."""
    text = view.quoted()[0]
    if "upper case" in view.task:
        text = text.upper()
    if "lower case" in view.task:
        text = text.lower()
    for box in view.all("textbox"):
        yield from view.type(box, text)
    yield from view.submit()


def log_in(view):
    name, password = view.quoted()
    for mark, text in (("#username", name), ("#password", password)):
        yield from view.click(view.one("textbox", mark=mark))
        if view.all("button", name="Cancel"):
            yield from view.submit("Cancel")
        yield from view.type(view.one("textbox", mark=mark), text)
    yield from view.click(view.one("button", where=lambda item: item.name in ("Login", "OK")))


def focus_text(view):
    ordinal = re.search(r"\d\w\w", view.task)
    box = view.all("textbox")[ORDINALS[ordinal[0]] if ordinal else 0]
    yield from view.act(step("focus", box))


def enter_date(view):
    month, day, year = re.search(r"(\d+)/(\d+)/(\d+)", view.task).groups()
    yield from view.type(view.one("date"), f"{year}-{month}-{day}")
    yield from view.submit()


def enter_time(view):
    hour, minute, half = re.search(r"(\d+):(\d+) (AM|PM)", view.task).groups()
    hour = int(hour) % 12 + (12 if half == "PM" else 0)
    yield from view.type(view.one("time"), f"{hour:02}:{minute}")
    yield from view.submit()


MONTHS = "January February March April May June July August September October November December".split()


def choose_day(view, month, day, year):
    """Turns an open calendar to the month, and clicks the day."""
    wanted = year * 12 + month
    for _ in range(40):
        words = " ".join(item.name for item in view.items[1:])
        found = re.search(rf"({'|'.join(MONTHS)}) (\d{{4}})", words)
        shown = int(found[2]) * 12 + MONTHS.index(found[1]) + 1
        if shown == wanted:
            return (yield from view.click(view.one("link", name=str(day))))
        yield from view.click(view.one(where=lambda item: item.name == ("Next" if shown < wanted else "Prev")))
        yield from view.look()


def choose_date(view):
    month, day, year = map(int, re.search(r"(\d+)/(\d+)/(\d+)", view.task).groups())
    yield from view.click(view.one("textbox"))
    yield from view.look()
    yield from choose_day(view, month, day, year)
    yield from view.submit()


def slide_to(view, handle, value_of, wanted):
    """Moves a slider with the keyboard until it has the wanted value."""
    for _ in range(40):
        distance = int(wanted) - value_of()
        if distance == 0:
            return
        key = "ArrowRight" if distance > 0 else "ArrowLeft"
        yield from view.press(*[key] * min(abs(distance), 10), item=handle)
        yield from view.look()


def use_slider(view):
    wanted = re.search(r"Select (-?\d+) ", view.task)[1]
    yield from slide_to(view, view.one("element"), lambda: int(view.texts[0]), wanted)
    yield from view.submit()


def use_three_sliders(view):
    for index, wanted in enumerate(re.search(r"\[(.*)\]", view.task)[1].split(",")):
        value_of = lambda index=index: int(view.texts[index])
        yield from slide_to(view, view.all("element")[index], value_of, wanted)
    yield from view.submit()


def use_spinner(view):
    """Clicks the arrows of the field, which does not accept keys."""
    distance = int(re.search(r"Select (-?\d+) ", view.task)[1]) - int(view.one("spinbutton").value)
    arrow = ".ui-spinner-up" if distance > 0 else ".ui-spinner-down"
    button = view.one("button", where=lambda item: arrow in item.details)
    yield from view.click(*[button] * abs(distance))
    yield from view.submit()


def form_sequence(view):
    wanted, ordinal = re.search(r"Select (-?\d+) with the slider, click the (\w+) ", view.task).groups()
    yield from slide_to(view, view.one("element"), lambda: int(view.texts[0]), wanted)
    yield from view.click(view.all("checkbox")[ORDINALS[ordinal]])
    yield from view.submit()


def form_sequence_2(view):
    radio = re.search(r"(\w+) radio", view.task)[1]
    textbox = re.search(r"(\w+) textbox", view.task)[1]
    yield from view.click(view.all("radio")[ORDINALS[radio]])
    yield from view.type(view.all("textbox")[ORDINALS[textbox]], view.quoted()[0])
    yield from view.submit()


def form_sequence_3(view):
    option = re.search(r"Choose (.*) from the dropdown", view.task)[1]
    yield from view.click(view.one("clickable"))
    yield from view.look()
    yield from view.click(view.one("item", "clickable", name=option))
    yield from view.submit(view.quoted()[-1])


def use_autocomplete(view):
    """Types the start of the word, and picks the suggestion with the right ending."""
    start, *end = view.quoted()
    yield from view.type(view.one("textbox"), start)
    yield from view.look()
    fits = lambda item: item.name.startswith(start) and item.name.endswith(end[0] if end else "")
    yield from view.click(view.one("menuitem", "option", "item", "clickable", where=fits))
    yield from view.submit()


def copy_text(view):
    """Copies text from one field to the other with the keyboard."""
    ordinal = re.search(r"(\d\w\w) text area", view.task)
    sources = view.all("textbox", where=lambda item: "multiline" in item.states)
    source, target = sources[ORDINALS[ordinal[1]] if ordinal else 0], view.one("textbox", mark="#answer-input")
    yield from view.press("Control+A", "Control+C", item=source)
    yield from view.press("Control+V", item=target)
    yield from view.submit()


def find_word(view):
    number = int(re.search(r"(\d+)\w\w word", view.task)[1])
    word = re.sub(r"[.,]", "", view.texts[0].split()[number - 1])
    yield from view.type(view.one("textbox"), word)
    yield from view.submit()


def read_table(view):
    label = re.search(r"value of (.*) into", view.task)[1]
    row = next(line for line in view.lines if line[0].name == label)
    yield from view.type(view.one("textbox"), row[1].name)
    yield from view.submit()


def read_table_2(view):
    values = {line[0].name: line[1].name for line in view.lines if len(line) == 2}
    labels = [text.rstrip(":") for text in view.texts if text.endswith(":")]
    for label, box in zip(labels, view.all("textbox"), strict=True):
        yield from view.type(box, values[label])
    yield from view.submit()


def scroll_text(view):
    area = view.one("textbox")
    yield from view.look(scope=area)
    word = re.findall(r"\w+", view.items[0].value)[-1]
    yield from view.look()
    yield from view.type(view.one("textbox", mark="#answer-input"), word)
    yield from view.submit()


def scroll_to_end(view):
    way = 50 if "bottom" in view.task else -50
    yield from view.act(step("scroll", view.one("textbox"), screens=way))
    yield from view.submit()


def sign_agreement(view):
    if "Scroll" not in view.task:
        return (yield from view.submit("Cancel"))
    name, button = view.quoted()
    yield from view.act(step("scroll", view.one("textbox"), screens=50))
    yield from view.look()
    yield from view.type(view.one("textbox", name="Name"), name)
    yield from view.submit(button)


def search_movies(view):
    """Fills in fields by their labels, which are before or after the fields, but in the same order."""
    genre, director, year = re.search(r"for (.*) movies directed by (.*) from year (\d+)", view.task).groups()
    values = {"genre": genre, "director": director, "year": year, "date": year}
    names = [item.name.lower() for item in view.items[1:] if not item.handle]
    labels = [label for name in names for label in values if label in name]
    for label, box in zip(labels, view.all("textbox"), strict=True):
        yield from view.type(box, values[label])
    yield from view.click(view.all("button", "clickable")[-1])


def calculate(view):
    """Solves an arithmetic problem, or an equation for x."""
    exercise = view.texts[0].replace("x", "*") if view.texts[0].endswith("=") else view.texts[0]
    if exercise.endswith("="):
        return (yield from answer(view, count(exercise.rstrip(" ="))))
    left, right = exercise.split(" = ")
    solution = next(x for x in range(-1000, 1000) if count(left, x) == count(right, x))
    yield from answer(view, solution)


def count(words, x=0):
    """Returns the value of two numbers with an operator between them."""
    words = words.split()
    if len(words) == 1:
        return x if words[0] == "x" else int(words[0])
    left, sign, right = words
    left, right = count(left, x), count(right, x)
    return {"+": left + right, "-": left - right, "*": left * right}[sign]


def answer(view, number):
    yield from view.type(view.one("textbox"), str(number))
    yield from view.submit()


def guess_number(view):
    low, high = map(int, re.search(r"between (\d+)-(\d+)", view.task).groups())
    while low <= high:
        guess = (low + high) // 2
        yield from view.type(view.one("spinbutton"), str(guess))
        yield from view.submit()
        if not view.all("button", name="Submit") or view.all(name="START"):
            return
        yield from view.look()
        if "lower" in view.texts[0]:
            high = guess - 1
        else:
            low = guess + 1


def text_transform(view):
    yield from view.type(view.one("textbox"), "".join(view.texts))
    yield from view.submit()


def pick_colour(view):
    name = re.search(r"Select (\w+) with", view.task)[1]
    yield from view.type(view.one("textbox"), HEX[name])
    # The picker covers the button, but the keyboard still reaches it.
    yield from view.press("Enter", item=view.one("button", name="Submit"))


TASKS = {
    "choose-date": choose_date,
    "choose-date-easy": choose_date,
    "choose-date-medium": choose_date,
    "copy-paste": copy_text,
    "copy-paste-2": copy_text,
    "enter-date": enter_date,
    "enter-password": type_quoted,
    "enter-text": type_quoted,
    "enter-text-2": type_quoted,
    "enter-text-dynamic": type_quoted,
    "enter-time": enter_time,
    "find-word": find_word,
    "focus-text": focus_text,
    "focus-text-2": focus_text,
    "form-sequence": form_sequence,
    "form-sequence-2": form_sequence_2,
    "form-sequence-3": form_sequence_3,
    "guess-number": guess_number,
    "login-user": log_in,
    "login-user-popup": log_in,
    "multi-layouts": search_movies,
    "multi-orderings": search_movies,
    "read-table": read_table,
    "read-table-2": read_table_2,
    "scroll-text": scroll_text,
    "scroll-text-2": scroll_to_end,
    "sign-agreement": sign_agreement,
    "simple-algebra": calculate,
    "simple-arithmetic": calculate,
    "text-transform": text_transform,
    "use-autocomplete": use_autocomplete,
    "use-colorwheel": pick_colour,
    "use-slider": use_slider,
    "use-slider-2": use_three_sliders,
    "use-spinner": use_spinner,
}
