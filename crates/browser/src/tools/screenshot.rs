//! `browser_screenshot`: takes a picture of the window, the whole page or one element, optionally with handles drawn
//! in.

use super::describe_page;
use crate::geometry::Area;
use crate::sessions::{BrowserGuard, BrowserNeed};
use crate::{BrowserError, BrowserSessions, Page};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_core::{
    AttachedFile, Caller, Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const DESCRIPTION: &str = "Takes a picture of the page in the active tab. Use browser_observe for text and handles; use a \
    picture for what only eyes can judge: layout, charts, images.";

/// Maximum edge length of a picture in pixels. Larger pictures are scaled down, because some models refuse them.
const MAX_EDGE_PIXELS: f64 = 7000.0;
/// Maximum height of a page in a picture, in CSS pixels.
const MAX_PAGE_HEIGHT: f64 = 12_000.0;
/// Maximum number of pixels. With this limit even noise, encoded as JPEG, fits into a message of the browser.
const MAX_PIXELS: f64 = 20e6;
/// Maximum number of pixels of a PNG, for the same reason.
const MAX_PNG_PIXELS: f64 = 8e6;
/// Formats and scales to try, in this order, until the picture is small enough.
const ENCODINGS: [(&str, f64); 5] = [
    ("png", 1.0),
    ("jpeg", 1.0),
    ("jpeg", 0.6),
    ("jpeg", 0.35),
    ("jpeg", 0.2),
];

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScreenshotArguments {
    /// Whether to show the whole page instead of the part in the window.
    #[serde(default)]
    full_page: bool,
    /// The handle of an element, to show only that one.
    element: Option<String>,
    /// Whether to draw the handles of the last observation into the picture.
    #[serde(default)]
    handles: bool,
}

#[derive(Deserialize)]
struct Picture {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_visual_viewport: Viewport,
    css_content_size: ContentSize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewport {
    page_x: f64,
    page_y: f64,
    client_width: f64,
    client_height: f64,
}

#[derive(Deserialize)]
struct ContentSize {
    width: f64,
    height: f64,
}

pub(super) fn tool(sessions: &BrowserSessions) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration {
        name: "browser_screenshot",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    let sessions = sessions.clone();
    declaration.with_code(move |caller, arguments| run(sessions.clone(), caller, arguments))
}

async fn run(
    sessions: BrowserSessions,
    caller: Caller,
    arguments: ScreenshotArguments,
) -> Result<ToolOutput, ToolError> {
    if sessions.has_typed_secret(&caller.session) {
        return Err(ToolError::trusted(
            "a secret was typed in this session, and a picture could show it; use `browser_observe`, which masks it",
        ));
    }
    let guard = sessions.acquire(&caller, BrowserNeed::MustBeOpen).await?;
    let picture = take_picture(&guard, &arguments).await;
    let (text, file) = match picture {
        Ok((text, file)) => (Ok(text), Some(file)),
        Err(error) => (Err(error), None),
    };
    let mut output = guard.finish(text).await?;
    output.files.extend(file);
    Ok(output)
}

async fn take_picture(
    guard: &BrowserGuard,
    arguments: &ScreenshotArguments,
) -> Result<(String, AttachedFile), BrowserError> {
    let page = guard.page()?;
    let (area, is_cut) = area_of(&page, arguments).await?;
    let is_drawn = arguments.handles && page.draw_handles().await?;
    let picture = picture_of(&page, area).await;
    if is_drawn {
        page.erase_handles().await?;
    }
    let file = picture?;
    let size = file.bytes.len().div_ceil(1024);
    let mut text = format!(
        "[A picture of {}: {:.0}×{:.0} CSS pixels, {size} KiB]\n",
        describe_page(&page).await,
        area.width,
        area.height,
    );
    if is_cut {
        text.push_str("[only the first 12000 pixels of the page are shown]\n");
    }
    if arguments.handles && !is_drawn {
        text.push_str("[no handles are drawn: call `browser_observe` first]\n");
    }
    Ok((text, file))
}

/// Returns the part of the document to show, and whether the page is larger than that.
async fn area_of(
    page: &Page,
    arguments: &ScreenshotArguments,
) -> Result<(Area, bool), BrowserError> {
    let metrics: Metrics = page.call("Page.getLayoutMetrics", json!({})).await?;
    let window = metrics.css_visual_viewport;
    if let Some(handle) = &arguments.element {
        let element = page.element(handle)?;
        page.scroll_to(&element).await?;
        let metrics: Metrics = page.call("Page.getLayoutMetrics", json!({})).await?;
        let window = metrics.css_visual_viewport;
        let area = page.area_of(&element).await?;
        let area = area.moved(window.page_x, window.page_y);
        let is_cut = area.height > MAX_PAGE_HEIGHT;
        return Ok((area.limited(MAX_PAGE_HEIGHT), is_cut));
    }
    if arguments.full_page {
        let content = metrics.css_content_size;
        let area = Area {
            x: 0.0,
            y: 0.0,
            width: content.width.max(1.0),
            height: content.height.max(1.0),
        };
        let is_cut = area.height > MAX_PAGE_HEIGHT;
        return Ok((area.limited(MAX_PAGE_HEIGHT), is_cut));
    }
    let area = Area {
        x: window.page_x,
        y: window.page_y,
        width: window.client_width,
        height: window.client_height,
    };
    Ok((area, false))
}

async fn picture_of(page: &Page, area: Area) -> Result<AttachedFile, BrowserError> {
    let pixels = area.width * area.height;
    let fitting = (MAX_EDGE_PIXELS / area.width.max(area.height))
        .min((MAX_PIXELS / pixels).sqrt())
        .min(1.0);
    let failed = |message: &str| BrowserError::Protocol {
        method: "Page.captureScreenshot",
        message: message.to_owned(),
    };
    for (format, scale) in ENCODINGS {
        if format == "png" && pixels * fitting * fitting > MAX_PNG_PIXELS {
            continue;
        }
        let mut params = json!({
            "format": format,
            "captureBeyondViewport": true,
            "clip": {
                "x": area.x, "y": area.y, "width": area.width, "height": area.height,
                "scale": scale * fitting,
            },
        });
        if format == "jpeg" {
            params["quality"] = Value::from(75);
        }
        let picture: Picture = page.call("Page.captureScreenshot", params).await?;
        let bytes = STANDARD.decode(picture.data);
        let bytes = bytes.map_err(|_| failed("it sent no picture"))?;
        if bytes.len() <= AttachedFile::IMAGE_BYTES {
            let name = format!("screenshot.{format}");
            let file = AttachedFile::image(name, bytes);
            return file.ok_or_else(|| failed("it sent no picture"));
        }
    }
    Err(failed(
        "the picture is too large; take one of a single element instead",
    ))
}
