"""Policies for tasks that are solved by clicking."""

import re

from view import step


def click_named(view):
    """Clicks the element whose name the utterance quotes."""
    name = view.quoted()[-1]
    yield from view.click(view.one(name=name))


def click_only_button(view):
    yield from view.click(view.one("button"))


def click_button_word(view):
    name = re.search(r"button (\w+)", view.task)[1]
    yield from view.click(view.one("button", name=name))


def click_button_sequence(view):
    first, second = re.findall(r"button (\w+)", view.task)
    yield from view.click(view.one("button", name=first), view.one("button", name=second))


def click_widget(view):
    kind = view.quoted()[0]
    is_wanted = {
        "button": lambda item: item.role == "button",
        "checkbox": lambda item: item.role == "checkbox",
        "radio": lambda item: item.role == "radio",
        "text": lambda item: item.role == "textbox" and "multiline" not in item.states,
        "textarea": lambda item: item.role == "textbox" and "multiline" in item.states,
    }[kind]
    yield from view.click(view.one(where=is_wanted))


def check_named(view):
    """Checks the boxes that the utterance lists."""
    wanted = re.search(r"Select (.*) and click", view.task)[1].split(", ")
    boxes = view.all("checkbox", "radio", where=lambda item: item.name in wanted)
    yield from view.click(*boxes, view.one("button", name="Submit"))


def switch_until_link(view):
    """Opens one tab after the other until the link appears."""
    name = view.quoted()[0]
    for tab in view.all("tab"):
        if "selected" not in tab.states and "expanded" not in tab.states:
            yield from view.click(tab)
            yield from view.look()
        found = view.all("clickable", "link", name=name)
        if found:
            return (yield from view.click(found[0]))


def click_tab(view):
    name = re.search(r"Tab #\d", view.task)[0]
    yield from view.click(view.one("tab", name=name))


def expand_and_submit(view):
    yield from view.click(view.one("tab", where=lambda item: item.name != "Submit"))
    yield from view.look()
    yield from view.click(view.one("button", name="Submit"))


def click_dialog(view):
    name = {"x": "Close"}.get(view.quoted()[0], view.quoted()[0])
    yield from view.click(view.one("button", name=name))


def click_menu(view):
    """Hovers over the items on the path until the last one appears, and clicks it."""
    *path, last = re.search(r"Select (.*)", view.task)[1].split(">")
    for name in path:
        yield from view.act(step("hover", view.one("menuitem", name=name)))
        yield from view.look()
    yield from view.click(view.one("menuitem", name=last))


def choose_from_list(view):
    wanted = re.search(r"Select (.*) from the", view.task)[1].split(", ")
    box = view.one("combobox", "listbox")
    yield from view.act({"action": "select", "handle": box.handle, "values": wanted})
    yield from view.submit()


def click_pie(view):
    yield from view.click(view.one("text", name="+"))
    yield from view.look()
    yield from view.click(view.one("text", name=view.quoted()[0]))


def find_greatest(view):
    cards = view.all("clickable")
    yield from view.click(max(cards, key=lambda card: int(card.name)))
    yield from view.submit()


def odd_or_even(view):
    for index, number in enumerate(view.texts):
        name = "Even" if int(number) % 2 == 0 else "Odd"
        yield from view.click(view.all("button", name=name)[index])
    yield from view.submit()


def generate_number(view):
    """Generates numbers until one meets the condition."""
    limit = re.search(r"(greater|less) than (\d+)", view.task)
    parity = 1 if " odd " in view.task else 0
    for _ in range(60):
        yield from view.click(view.one("button", name="Generate"))
        yield from view.look()
        number = int(view.texts[-1])
        if limit:
            is_good = number > int(limit[2]) if limit[1] == "greater" else number < int(limit[2])
        else:
            is_good = number % 2 == parity
        if is_good:
            return (yield from view.submit())


def buy_ticket(view):
    """Compares durations or prices, whichever the utterance asks for."""
    buttons = view.all("button")
    if "duration" in view.task:
        hours = [re.match(r"(\d+)h (\d+)m", text) for text in view.texts]
        costs = [int(found[1]) * 60 + int(found[2]) for found in hours if found]
    else:
        costs = [item.number() for item in buttons]
    best = max if re.search("longest|most expensive|highest", view.task) else min
    yield from view.click(buttons[costs.index(best(costs))])


def phone_book(view):
    """Turns the pages until the person appears, and clicks the requested field."""
    name = re.search(r"Find (\S+) in", view.task)[1]
    label = re.search(r"their (phone number|email|address)", view.task)[1].split()[0].capitalize()
    while name not in [item.name for item in view.items if item.role == "h2"]:
        yield from view.click(view.one("link", name=">"))
        yield from view.look()
    text = next(text for text in view.texts if text.startswith(label + ":"))
    yield from view.click(view.one("link", name=text.split(": ", 1)[1]))


def order_food(view):
    items = view.items[1:]
    if ": " in view.task:
        names = re.search(r": (.*)", view.task)[1].split(", ")
        wanted = [index for index, item in enumerate(items) if item.name in names]
    else:
        count, kind = re.search(r"Order (\d+) items that are (.*)", view.task).groups()
        wanted = [index for index, item in enumerate(items) if item.role == "image" and item.name == kind][: int(count)]
    pluses = [next(item for item in items[index:] if item.name == "+") for index in wanted]
    yield from view.click(*pluses)
    yield from view.submit("Order!")


def navigate_tree(view):
    """Opens one folder after the other until the name appears."""
    name = view.quoted()[0]
    is_opened = set()
    while True:
        found = view.all("item", "clickable", name=name)
        if found:
            return (yield from view.click(found[-1]))
        closed = [item for item in view.all("clickable", mark=".hitarea") if item.handle not in is_opened]
        is_opened.add(closed[0].handle)
        yield from view.click(closed[0])
        yield from view.look()


TASKS = {
    "buy-ticket": buy_ticket,
    "choose-list": choose_from_list,
    "click-button": click_named,
    "click-button-sequence": click_button_sequence,
    "click-checkboxes": check_named,
    "click-checkboxes-large": check_named,
    "click-checkboxes-transfer": check_named,
    "click-collapsible": expand_and_submit,
    "click-collapsible-2": switch_until_link,
    "click-dialog": click_dialog,
    "click-dialog-2": click_dialog,
    "click-link": click_named,
    "click-menu": click_menu,
    "click-option": check_named,
    "click-pie": click_pie,
    "click-scroll-list": choose_from_list,
    "click-tab": click_tab,
    "click-tab-2": switch_until_link,
    "click-tab-2-hard": switch_until_link,
    "click-test": click_only_button,
    "click-test-2": click_button_word,
    "click-widget": click_widget,
    "find-greatest": find_greatest,
    "generate-number": generate_number,
    "navigate-tree": navigate_tree,
    "odd-or-even": odd_or_even,
    "order-food": order_food,
    "phone-book": phone_book,
    "unicode-test": click_named,
}
