//! The routes below `/api/`, with their OpenAPI description.

pub(crate) mod approvals;
mod archive;
mod calls;
mod events;
pub(crate) mod sessions;
mod setup;
mod turns;

use crate::Api;
use crate::problem::{PROBLEM_JSON, Problem};
use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use lango_core::AttachedFile;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The maximum size of a body, in bytes: a message with all its files in base64.
const MAX_BODY_BYTES: usize = AttachedFile::MESSAGE_BYTES / 3 * 4 + 2 * 1024 * 1024;

#[derive(OpenApi)]
#[openapi(
    info(title = "lango", description = "Sessions, turns, approvals and setup of a lango server"),
    modifiers(&BearerToken),
    security(("token" = []))
)]
struct Description;

struct BearerToken;

impl utoipa::Modify for BearerToken {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Returns the router, and the description of its routes.
pub(crate) fn described() -> (Router<Api>, utoipa::openapi::OpenApi) {
    let (router, mut openapi) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(setup::me))
        .routes(routes!(setup::sign_out))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::show, sessions::rename, sessions::delete))
        .routes(routes!(archive::fork))
        .routes(routes!(archive::export))
        .routes(routes!(archive::attachment))
        .routes(routes!(events::read))
        .routes(routes!(events::stream))
        .routes(routes!(turns::start))
        .routes(routes!(turns::show))
        .routes(routes!(turns::cancel))
        .routes(routes!(calls::show))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show, approvals::answer))
        .routes(routes!(approvals::revoke))
        .routes(routes!(setup::agents))
        .routes(routes!(setup::models))
        .routes(routes!(setup::tools))
        .routes(routes!(setup::mcp))
        .routes(routes!(setup::knowledge))
        .routes(routes!(setup::memory))
        .routes(routes!(setup::usage))
        .routes(routes!(setup::status))
        .routes(routes!(setup::doctor))
        .routes(routes!(setup::config))
        .split_for_parts();
    describe_problems(&mut openapi);
    (router, openapi)
}

/// Sets the media type of all problems, which differs from that of other responses.
fn describe_problems(openapi: &mut utoipa::openapi::OpenApi) {
    let operations = openapi.paths.paths.values_mut().flat_map(|path| {
        [
            &mut path.get,
            &mut path.post,
            &mut path.patch,
            &mut path.delete,
        ]
    });
    for operation in operations.flatten() {
        for (status, response) in &mut operation.responses.responses {
            let is_problem = status.starts_with(['4', '5']);
            if let RefOr::T(response) = response
                && is_problem
                && let Some(content) = response.content.shift_remove("application/json")
            {
                response.content.insert(PROBLEM_JSON.to_owned(), content);
            }
        }
    }
}

/// Returns the routes below the reserved segments. An unknown path there gets a problem response and is
/// not passed on to A2A.
pub(crate) fn router(api: Api) -> Router {
    let (routes, openapi) = described();
    let description = move || async move { Json(openapi) };
    let mut router = routes
        .route("/api/openapi.json", get(description))
        .merge(crate::openai::router())
        .merge(crate::agui::router())
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    for segment in crate::RESERVED {
        router = router
            .route(&format!("/{segment}"), axum::routing::any(nothing))
            .route(&format!("/{segment}/"), axum::routing::any(nothing))
            .route(
                &format!("/{segment}/{{*path}}"),
                axum::routing::any(nothing),
            );
    }
    router
        .method_not_allowed_fallback(not_allowed)
        .with_state(api)
}

async fn nothing() -> impl IntoResponse {
    Problem::not_found("there is nothing at this path; see /api/openapi.json")
}

async fn not_allowed() -> impl IntoResponse {
    Problem::method_not_allowed()
}
