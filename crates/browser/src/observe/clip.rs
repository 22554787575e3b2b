//! Clipping: determines which content is hidden by the boxes around it, permanently or until it is scrolled into view.

use super::scene::{Viewport, Visibility};
use super::snapshot::{Layout, Rect};

/// Content that lies further to the left or further up than this coordinate, in pixels, is hidden on purpose.
const FAR_OUTSIDE: f64 = -5.0;
const EVERYWHERE: Rect = Rect {
    x: f64::MIN / 4.0,
    y: f64::MIN / 4.0,
    width: f64::MAX / 2.0,
    height: f64::MAX / 2.0,
};

/// The area in which content is visible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clip {
    /// Content outside is hidden permanently, for example by `overflow: hidden`.
    hard: Rect,
    /// Content outside can be scrolled into view.
    soft: Rect,
    /// Whether an ancestor scrolls horizontally, and vertically.
    scrolls: [bool; 2],
}

impl Clip {
    /// Returns a clip that hides nothing.
    pub(super) fn nothing() -> Self {
        Self {
            hard: EVERYWHERE,
            soft: EVERYWHERE,
            scrolls: [false; 2],
        }
    }

    /// Returns the clip inside a scrolling box.
    pub(super) fn scrolled_in(self, rect: Rect) -> Self {
        Self {
            hard: self.hard,
            soft: self.soft.intersect(rect),
            scrolls: [true; 2],
        }
    }

    /// Returns the clip inside an element.
    pub(super) fn within(self, layout: &Layout, rect: Rect, tag: &str) -> Self {
        // The root element clips to the viewport, which can scroll.
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

    pub(super) fn visibility(
        self,
        rect: Rect,
        is_transparent: bool,
        viewport: Viewport,
    ) -> Visibility {
        let touches = |area: Rect| {
            // An empty box counts, because its content may overflow.
            let cut = rect.intersect(area);
            // Text only for screen readers is clipped to a dot.
            let is_dot = area.width <= 1.5 && area.height <= 1.5;
            cut.width >= 0.0 && cut.height >= 0.0 && !area.is_empty() && !is_dot
        };
        // Content that was scrolled out of view can be scrolled back.
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
            Visibility::Hidden
        } else if is_transparent {
            Visibility::Transparent
        } else if !rect.intersect(self.soft).intersect(screen).is_empty() {
            Visibility::InView
        } else {
            Visibility::Reachable
        }
    }
}

/// Returns a rectangle that is limited only on the given axes (horizontal, vertical).
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
