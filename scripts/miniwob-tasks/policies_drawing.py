"""Policies for shapes, colours, positions, and dragging."""

import math
import re

from colours import rgb
from view import step

COLOUR_CHANNELS = {"red": 0, "green": 1, "blue": 2}


def click_at(view, drawing, x, y):
    yield from view.act(step("click", drawing, x=round(x), y=round(y)))


def mark_at(view, x, y):
    """Puts the mark of a drawing at a point: clicks, finds where the mark appeared, and corrects by the difference."""
    drawing = view.one("svg")
    before = {item.handle for item in view.all("circle")}
    yield from click_at(view, drawing, x, y)
    yield from view.look()
    mark = next(item for item in view.all("circle") if item.handle not in before)
    yield from click_at(view, drawing, 2 * x - mark.middle[0], 2 * y - mark.middle[1])
    yield from view.submit()


def kind_of(item):
    """Returns the name of a shape and its category."""
    if item.role == "text":
        return item.name, "digit" if item.name.isdigit() else "letter"
    return {"rect": "rectangle", "circle": "circle", "polygon": "triangle"}[item.role], "shape"


def fits(item, words):
    """Returns whether a shape matches a description such as `small red digit`."""
    name, kind = kind_of(item)
    # Letters are narrower than shapes of the same size.
    size = "large" if item.height > 15 else "small"
    return all(word in (name, kind, "item", item.colour, size) for word in words)


def shapes_of(view):
    return view.all("rect", "circle", "polygon", "text")


def click_shape(view):
    words = re.search(r"Click on a (.*)", view.task)[1].split()
    yield from view.click(next(item for item in shapes_of(view) if fits(item, words)))


def count_shape(view):
    words = re.search(r"How many (.*) are there", view.task)[1].split()
    words = [re.sub(r"s$", "", word) if len(word) > 1 else word for word in words]
    count = sum(fits(item, words) for item in shapes_of(view))
    yield from view.submit(str(count))


def identify_shape(view):
    name, kind = kind_of(shapes_of(view)[0])
    known = {"digit": "Number", "letter": "Letter"}
    yield from view.submit(known.get(kind, name.capitalize()))


def click_colour(view):
    """Clicks the colour that the utterance names, or shows in a small box."""
    boxes = view.all("clickable", mark=".color")
    name = re.search(r"the (\w+) colored", view.task)
    wanted = rgb(name[1]) if name else view.one("clickable", mark="#query-color").colour
    yield from view.click(next(box for box in boxes if box.colour == wanted))


def click_shades(view):
    channel = COLOUR_CHANNELS[re.search(r"shades of (\w+)", view.task)[1]]

    def is_shade(item):
        parts = list(map(int, re.findall(r"\d+", item.colour)))
        return len(parts) >= 3 and parts[channel] == max(parts[:3])

    yield from view.click(*view.all("clickable", where=is_shade))
    yield from view.submit()


def ascending_numbers(view):
    """Clicks the numbers in order. They are hidden after the first click, so their positions are read before it."""
    numbers = sorted(view.all("text"), key=lambda item: int(item.name))
    yield from view.click(numbers[0])
    for number in numbers[1:]:
        nearest = min(view.all("rect"), key=lambda item: math.dist(item.middle, number.middle))
        yield from view.click(nearest)


def grid_coordinate(view):
    """Clicks a point of the grid, whose points have equal distances, with zero in the middle."""
    x, y = map(int, re.search(r"\((-?\d+),(-?\d+)\)", view.task).groups())
    points = view.all("circle")
    columns = sorted({point.x for point in points})
    rows = sorted({point.y for point in points})
    wanted = columns[len(columns) // 2 + x], rows[len(rows) // 2 - y]
    yield from view.click(next(point for point in points if (point.x, point.y) == wanted))


def circle_center(view):
    yield from mark_at(view, *view.one("circle").middle)


def find_midpoint(view):
    first, second = view.all("circle")
    yield from mark_at(view, *(sum(pair) / 2 for pair in zip(first.middle, second.middle)))


def bisect_angle(view):
    """Clicks a point between the two sides, at the same distance from both."""
    corner = view.one("circle", where=lambda item: item.colour == "blue").middle
    sides = [item.middle for item in view.all("circle", where=lambda item: item.colour != "blue")]
    units = [[(a - b) / math.dist(side, corner) for a, b in zip(side, corner)] for side in sides]
    middle = [sum(pair) / 2 for pair in zip(*units)]
    length = math.hypot(*middle)
    best = farthest_inside(view.one("svg"), corner, [part / length for part in middle])
    yield from mark_at(view, *best)


def right_angle(view):
    corner = view.one("circle", where=lambda item: item.colour == "blue").middle
    other = view.one("circle", where=lambda item: item.colour != "blue").middle
    away = [(a - b) / math.dist(other, corner) for a, b in zip(other, corner)]
    candidates = [(-away[1], away[0]), (away[1], -away[0])]
    points = [farthest_inside(view.one("svg"), corner, candidate) for candidate in candidates]
    yield from mark_at(view, *max(points, key=lambda point: math.dist(point, corner)))


def farthest_inside(drawing, start, direction):
    """Returns the farthest point in a direction that is still inside, or the start. A farther point is more precise."""
    inside = lambda x, y: 4 < x < drawing.width - 4 and 4 < y < drawing.height - 4
    lengths = range(150, 5, -1)
    points = ([at + length * part for at, part in zip(start, direction)] for length in lengths)
    # Clicks are on whole pixels, so choose the far point with the smallest rounding error.
    good = [point for point in points if inside(*point)][:60]
    loss = lambda point: math.dist(point, list(map(round, point))) / math.dist(point, start)
    return min(good, key=loss, default=start)


def draw_line(view):
    """Draws a line through the point, in the requested direction."""
    drawing, (x, y) = view.one("svg"), view.one("circle").middle
    down = "vertical" in view.task
    start = {"from_x": x, "from_y": y - 25, "x": 0, "y": 50} if down else {"from_x": x - 25, "from_y": y, "x": 50, "y": 0}
    yield from view.act(step("drag", drawing, **start))
    yield from view.submit()


def drag_shape(view):
    right, down = {"left": (-25, 0), "right": (25, 0), "up": (0, -25), "down": (0, 25)}[
        re.search(r"Drag the \w+ (\w+)", view.task)[1]
    ]
    yield from view.act(step("drag", view.one("circle", "rect", "polygon"), x=right, y=down))
    yield from view.submit()


def drag_shapes(view):
    """Drags all shapes of a kind into the box, next to each other."""
    role = {"rectangles": "rect", "circles": "circle", "triangles": "polygon"}[re.search(r"all (\w+)", view.task)[1]]
    box = max(view.all("rect"), key=lambda item: item.width)
    inside = lambda item: box.x < item.x < box.x + box.width and box.y < item.y < box.y + box.height
    wanted = [item for item in view.all(role) if item.handle != box.handle and not inside(item)]
    for index, item in enumerate(wanted):
        yield from move_to(view, item, box.x + 14 + index * 17, box.y + box.height / 2)
    yield from view.submit()


def drag_shapes_to_two(view):
    """Sorts the shapes into two boxes, by kind or colour."""
    word = re.search(r"all (\w+)", view.task)[1]
    role = {"rectangles": "rect", "circles": "circle", "triangles": "polygon"}.get(word)
    boxes = sorted(view.all("rect", where=lambda item: item.width > 40), key=lambda item: item.x)
    counts = [0, 0]
    for item in view.all("rect", "circle", "polygon", where=lambda item: item.width < 40):
        is_wanted = item.role == role if role else item.colour == word
        side = 0 if is_wanted else 1
        column, row = counts[side] % 3, counts[side] // 3
        yield from move_to(view, item, boxes[side].x + 14 + column * 18, boxes[side].y + 14 + row * 18)
        counts[side] += 1
    yield from view.submit()


def move_to(view, item, x, y):
    """Drags an item so that its centre is at a point of the drawing."""
    yield from view.act(step("drag", item, x=x - item.middle[0], y=y - item.middle[1]))


def drag_box(view):
    yield from view.act(step("drag", view.one(name="s"), to=view.one(name="L").handle))
    yield from view.submit()


def drag_item(view, item, target):
    yield from view.act(step("drag", item, to=target.handle))
    yield from view.look()


ITEMS_BY_PLACE = {"top left": 0, "top center": 1, "top right": 2, "center left": 3, "center": 4, "center right": 5}
ITEMS_BY_PLACE |= {"bottom left": 6, "bottom center": 7, "bottom right": 8}


def drag_items_grid(view):
    name, way = re.search(r"Drag (\S+) (.*)\.", view.task).groups()
    items = view.all("item")
    at = next(index for index, item in enumerate(items) if item.name == name)
    moves = {"up by one": -3, "down by one": 3, "left by one": -1, "right by one": 1}
    target = at + moves[way] if way in moves else ITEMS_BY_PLACE[way.removeprefix("to the ")]
    yield from drag_item(view, items[at], items[target])


def drag_items(view):
    name, way = re.search(r"Drag (\S+) (.*)\.", view.task).groups()
    items = view.all("item")
    at = next(index for index, item in enumerate(items) if item.name == name)
    ordinal = re.search(r"(\d)\w\w position", way)
    moves = {"to the top": 0, "to the bottom": len(items) - 1, "up by one position": at - 1, "down by one position": at + 1}
    target = int(ordinal[1]) - 1 if ordinal else moves[way]
    yield from drag_item(view, items[at], items[target])


def drag_sort_numbers(view):
    """Puts the lowest number first, then the next one, and so on."""
    count = len(view.all("item"))
    for place in range(count):
        items = view.all("item")
        best = min(range(place, count), key=lambda index: int(items[index].name))
        if best != place:
            yield from drag_item(view, items[best], items[place])
    yield from view.submit()


def resize_textarea(view):
    dimension, way = re.search(r"the (width|height) is (smaller|larger)", view.task).groups()
    distance = 20 if way == "larger" else -20
    grip = view.all("grip")[-1]
    yield from view.act(step("drag", grip, x=distance, y=distance))
    yield from view.submit()


TASKS = {
    "ascending-numbers": ascending_numbers,
    "bisect-angle": bisect_angle,
    "circle-center": circle_center,
    "click-color": click_colour,
    "click-shades": click_shades,
    "click-shape": click_shape,
    "count-shape": count_shape,
    "drag-box": drag_box,
    "drag-circle": drag_shape,
    "drag-items": drag_items,
    "drag-items-grid": drag_items_grid,
    "drag-shapes": drag_shapes,
    "drag-shapes-2": drag_shapes_to_two,
    "drag-single-shape": drag_shape,
    "drag-sort-numbers": drag_sort_numbers,
    "draw-line": draw_line,
    "find-midpoint": find_midpoint,
    "grid-coordinate": grid_coordinate,
    "identify-shape": identify_shape,
    "resize-textarea": resize_textarea,
    "right-angle": right_angle,
}
