//! `browser_screenshot`: a picture of the window, the whole page or one element, optionally with handles drawn in.

use super::describe_page;
use crate::geometry::Area;
use crate::sessions::{Need, Visit};
use crate::{BrowserError, Page, Sessions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_core::{
    AttachedFile, Caller, Declaration, Effect, Risk, Subject, Tool, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const DESCRIPTION: &str = "Takes a picture of what the active tab shows. Use browser_observe for text and handles; a \
    picture is for what only eyes can tell: layout, charts, images.";

/// Maximum edge of a picture in pixels; larger ones are scaled down, because some models refuse them.
const LONGEST_EDGE: f64 = 7000.0;
/// Maximum height of a page in a picture, in CSS pixels.
const LONGEST_PAGE: f64 = 12_000.0;
/// Maximum number of pixels: even noise as JPEG fits into a message of the browser.
const MOST_PIXELS: f64 = 20e6;
/// Maximum number of pixels of a PNG, for the same reason.
const MOST_PNG_PIXELS: f64 = 8e6;
/// Formats and scales, tried in this order until the picture is small enough.
const FORMS: [(&str, f64); 5] = [
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

pub(super) fn tool(sessions: &Sessions) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "browser_screenshot",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    let sessions = sessions.clone();
    declaration.with_code(move |caller, arguments| run(sessions.clone(), caller, arguments))
}

async fn run(
    sessions: Sessions,
    caller: Caller,
    arguments: ScreenshotArguments,
) -> Result<ToolOutput, ToolError> {
    if sessions.has_typed_secret(&caller.session) {
        return Err(ToolError::trusted(
            "a secret was typed in this session, and a picture could show it; use browser_observe, which masks it",
        ));
    }
    let visit = sessions.visit(&caller, Need::Open).await?;
    let shot = shoot(&visit, &arguments).await;
    let (text, file) = match shot {
        Ok((text, file)) => (Ok(text), Some(file)),
        Err(error) => (Err(error), None),
    };
    let mut output = visit.end(text).await?;
    output.files.extend(file);
    Ok(output)
}

async fn shoot(
    visit: &Visit,
    arguments: &ScreenshotArguments,
) -> Result<(String, AttachedFile), BrowserError> {
    let page = visit.page()?;
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

/// Returns the part of the document to show, and whether it was cut.
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
        let is_cut = area.height > LONGEST_PAGE;
        return Ok((area.limited(LONGEST_PAGE), is_cut));
    }
    if arguments.full_page {
        let content = metrics.css_content_size;
        let area = Area {
            x: 0.0,
            y: 0.0,
            width: content.width.max(1.0),
            height: content.height.max(1.0),
        };
        let is_cut = area.height > LONGEST_PAGE;
        return Ok((area.limited(LONGEST_PAGE), is_cut));
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
    let fitting = (LONGEST_EDGE / area.width.max(area.height))
        .min((MOST_PIXELS / pixels).sqrt())
        .min(1.0);
    let failed = |message: &str| BrowserError::Protocol {
        method: "Page.captureScreenshot",
        message: message.to_owned(),
    };
    for (format, scale) in FORMS {
        if format == "png" && pixels * fitting * fitting > MOST_PNG_PIXELS {
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
    Err(failed("the picture is too large; show an element instead"))
}
