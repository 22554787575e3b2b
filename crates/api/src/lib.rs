//! The HTTP API of lango and its web page.
//!
//! `/api/` provides everything that the page shows and does; `/api/openapi.json` describes it. For existing clients,
//! `/v1/` speaks OpenAI's protocols and `/agui` speaks AG-UI. All of them need an access token with the right
//! [`Scope`](lango_core::Scope). The page is compiled into the binary and uses only `/api/`.

pub mod access;
mod agui;
mod context;
pub mod feeds;
mod json;
mod model;
mod openai;
mod page;
mod problem;
mod protocol;
mod routes;
mod sign_in;
pub mod tokens;
mod turns;

pub use context::{ApiContext, Part, Program};
pub use feeds::Feeds;
pub use problem::Problem;
pub use sign_in::link as sign_in_link;
pub use turns::{NewTurn, TurnHandle, TurnStarted, Turns};

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use lango_core::{AccessToken, Clock, IdGenerator, StoreError, Timestamp, TokenDigest, TokenStore};
use lango_server::ServerContext;
use lango_store::Store;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The first segments of the API's paths. An A2A tenant can have neither these names nor those of the page's paths.
pub const RESERVED: [&str; 3] = ["api", "v1", "agui"];

/// The dependencies of the API.
pub struct ApiParts {
    /// The program that serves the API.
    pub context: Arc<dyn ApiContext>,
    /// The server that runs turns.
    pub server: Arc<dyn ServerContext>,
    /// The database.
    pub store: Arc<Store>,
    /// The feeds of live events.
    pub feeds: Arc<Feeds>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of new ids.
    pub ids: Arc<dyn IdGenerator>,
    /// The digest of the A2A token, which has no scopes here.
    pub a2a_token: Option<TokenDigest>,
    /// The maximum number of turns that run or wait for their session at a time.
    pub max_running: usize,
    /// The maximum number of open streams.
    pub max_streams: usize,
    /// Whether browsers reach the server over HTTPS.
    pub is_https: bool,
}

/// The API. Clones share the same state.
#[derive(Clone)]
pub struct Api(Arc<ApiState>);

impl std::ops::Deref for Api {
    type Target = ApiState;

    fn deref(&self) -> &ApiState {
        &self.0
    }
}

/// The state that handlers share.
pub struct ApiState {
    pub(crate) context: Arc<dyn ApiContext>,
    pub(crate) server: Arc<dyn ServerContext>,
    pub(crate) store: Arc<Store>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) turns: Turns,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGenerator>,
    pub(crate) a2a_token: Option<TokenDigest>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) is_stopping: watch::Sender<bool>,
    pub(crate) started: Timestamp,
    pub(crate) is_https: bool,
}

impl Api {
    /// Creates the API.
    pub fn new(parts: ApiParts) -> Self {
        let turns = Turns::new(
            Arc::clone(&parts.server),
            Arc::clone(&parts.feeds),
            parts.max_running,
        );
        Self(Arc::new(ApiState {
            context: parts.context,
            server: parts.server,
            store: parts.store,
            feeds: parts.feeds,
            turns,
            started: parts.clock.now(),
            clock: parts.clock,
            ids: parts.ids,
            a2a_token: parts.a2a_token,
            streams: Arc::new(Semaphore::new(parts.max_streams)),
            is_stopping: watch::Sender::new(false),
            is_https: parts.is_https,
        }))
    }

    /// Closes all streams of live events for a shutdown. Clients reconnect after a restart.
    pub fn end_streams(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Returns the router of the API and the page. Requests for other paths go to `other`. At `/`, GET returns the
    /// page, and `other` handles the other methods.
    pub fn router_beside(&self, other: Router) -> Router {
        let guarded = routes::router(self.clone())
            .layer(from_fn_with_state(self.clone(), access::check))
            .layer(from_fn(openai::in_openai_shape));
        guarded
            .merge(sign_in::router(self.clone()))
            .merge(page::router(other.clone()))
            .fallback_service(other)
    }
}

impl ApiState {
    pub(crate) async fn store_token(
        &self,
        digest: TokenDigest,
    ) -> Result<Option<AccessToken>, StoreError> {
        self.store.token(digest, self.clock.now()).await
    }
}
