//! What boxes cut off from their content: for good, or until it is scrolled.

use super::scene::{Sight, Viewport};
use super::snapshot::{Layout, Rect};

/// What lies further to the left or above than this is not meant to be seen.
const FAR_OUTSIDE: f64 = -5.0;
const EVERYWHERE: Rect = Rect {
    x: f64::MIN / 4.0,
    y: f64::MIN / 4.0,
    width: f64::MAX / 2.0,
    height: f64::MAX / 2.0,
};

/// What of a place can be seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clip {
    /// The rest is cut off for good, such as by `overflow: hidden`.
    hard: Rect,
    /// The rest can be scrolled to.
    soft: Rect,
    /// Whether something around it scrolls to the side, and up and down.
    scrolls: [bool; 2],
}

impl Clip {
    /// Cuts off nothing.
    pub(super) fn nothing() -> Self {
        Self {
            hard: EVERYWHERE,
            soft: EVERYWHERE,
            scrolls: [false; 2],
        }
    }

    /// What is seen inside a box that scrolls.
    pub(super) fn scrolled_in(self, rect: Rect) -> Self {
        Self {
            hard: self.hard,
            soft: self.soft.intersect(rect),
            scrolls: [true; 2],
        }
    }

    /// What is seen inside an element.
    pub(super) fn within(self, layout: &Layout, rect: Rect, tag: &str) -> Self {
        // What the root cuts off is the viewport, which scrolls.
        if matches!(tag, "html" | "body") {
            return self;
        }
        let overflow = [&*layout.styles.overflow_x, &*layout.styles.overflow_y];
        let hard = overflow.map(|value| matches!(value, "hidden" | "clip"));
        let scrolls = overflow.map(|value| matches!(value, "auto" | "scroll"));
        let soft = [hard[0] || scrolls[0], hard[1] || scrolls[1]];
        Self {
            hard: self.hard.intersect(along(rect, hard)),
            soft: self.soft.intersect(along(rect, soft)),
            scrolls: [self.scrolls[0] || scrolls[0], self.scrolls[1] || scrolls[1]],
        }
    }

    pub(super) fn sight(self, rect: Rect, is_transparent: bool, viewport: Viewport) -> Sight {
        let touches = |area: Rect| {
            // An empty box inside counts: its content may hang out.
            let cut = rect.intersect(area);
            // Text for screen readers only is cut to a dot.
            let is_dot = area.width <= 1.5 && area.height <= 1.5;
            cut.width >= 0.0 && cut.height >= 0.0 && !area.is_empty() && !is_dot
        };
        // What was scrolled past can be scrolled back to.
        let [scrolls_across, scrolls_down] = self.scrolls;
        let is_outside = (!scrolls_across && rect.x + rect.width < FAR_OUTSIDE)
            || (!scrolls_down && rect.y + rect.height + viewport.scroll_y < FAR_OUTSIDE);
        let screen = Rect {
            x: 0.0,
            y: 0.0,
            width: viewport.width,
            height: viewport.height,
        };
        if is_outside || !touches(self.hard) {
            Sight::Hidden
        } else if is_transparent {
            Sight::Transparent
        } else if !rect.intersect(self.soft).intersect(screen).is_empty() {
            Sight::InView
        } else {
            Sight::Reachable
        }
    }
}

/// A rectangle that bounds only the axes (horizontal, vertical) that are set.
fn along(rect: Rect, axes: [bool; 2]) -> Rect {
    let [is_across, is_down] = axes;
    let across = if is_across { rect } else { EVERYWHERE };
    let down = if is_down { rect } else { EVERYWHERE };
    Rect {
        x: across.x,
        width: across.width,
        y: down.y,
        height: down.height,
    }
}
