//! Connects to a configured agent: reads its card and builds an agent that can be called.

use super::agent::{A2aAgent, CardStaleness};
use super::card::Card;
use super::card_error::{CardError, SkippedRemote};
use super::fetch;
use super::http::{Clients, Credentials};
use super::origin;
use super::settings::{RemoteSettings, RemoteTimeouts};
use super::wire::{Wire, WireParts};
use futures_util::future::join_all;
use lango_net::{Egress, PlainHttp};
use std::sync::Arc;
use tokio::sync::Notify;

/// Resources that all remote agents share.
#[derive(Default)]
pub(crate) struct ClientContext {
    pub clients: Clients,
    /// Checks the URLs in cards, and fetches files by URL.
    pub egress: Egress,
    /// Notified when a call suggests that a card is outdated.
    pub card_stale: Arc<Notify>,
}

/// A connected agent, or the reason why it was skipped.
pub(crate) type ConnectResult = Result<Arc<A2aAgent>, SkippedRemote>;

/// Reads the card of one agent, within `timeouts.card`.
pub async fn connect(
    settings: &RemoteSettings,
    timeouts: &RemoteTimeouts,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    connect_with(settings, timeouts, &ClientContext::default()).await
}

/// Reads all cards concurrently, within `timeouts.card`. The results have the order of the settings.
pub(crate) async fn connect_all(
    settings: &[RemoteSettings],
    timeouts: &RemoteTimeouts,
    context: &ClientContext,
) -> Vec<ConnectResult> {
    let all = settings.iter();
    join_all(all.map(|one| connect_with(one, timeouts, context))).await
}

async fn connect_with(
    settings: &RemoteSettings,
    timeouts: &RemoteTimeouts,
    context: &ClientContext,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    let agent = tokio::time::timeout(timeouts.card, agent(settings, timeouts, context)).await;
    let agent = agent.unwrap_or_else(|_elapsed| {
        Err(CardError::TimedOut {
            after_ms: u64::try_from(timeouts.card.as_millis()).unwrap_or(u64::MAX),
        })
    });
    agent.map(Arc::new).map_err(|reason| SkippedRemote {
        name: settings.name.clone(),
        reason,
    })
}

async fn agent(
    settings: &RemoteSettings,
    timeouts: &RemoteTimeouts,
    context: &ClientContext,
) -> Result<A2aAgent, CardError> {
    let home = fetch::card_url(&settings.card_url)?;
    let is_unencrypted = PlainHttp::LocalOnly.check(&home).is_err();
    let secret = match (&settings.token, settings.headers.first()) {
        (Some(_), _) => Some(settings.token_source.clone()),
        (None, Some((name, _))) => Some(format!("`{name}` of `headersEnv`")),
        (None, None) => None,
    };
    if let (true, Some(source_of_token)) = (is_unencrypted, secret) {
        return Err(CardError::OpenToken {
            url: origin::display_url(&home),
            source_of_token,
        });
    }
    let credentials = Credentials::new(settings, home.clone());
    let fetched = fetch::fetch(settings, &credentials, context, timeouts).await?;
    let card = Card::read(&fetched)?;
    let interface = &card.interface;
    let admitted = origin::admit(&home, &fetched.url, &interface.url, &context.egress).await;
    let route = admitted.map_err(|why| CardError::InterfaceRefused {
        url: origin::display_url(&interface.url),
        why,
    })?;
    let client = context.clients.for_route(&interface.url, &route, timeouts);
    let client = client.map_err(|detail| CardError::NoClient { detail })?;
    let wire = Wire::new(WireParts {
        client,
        interface: interface.clone(),
        credentials,
        masks: settings.masks.clone(),
        timeouts: RemoteTimeouts {
            reply: timeouts.reply.max(settings.timeout.unwrap_or_default()),
            ..*timeouts
        },
    });
    let staleness = CardStaleness::new(Arc::clone(&context.card_stale));
    let name = settings.name.clone();
    let timeout = settings.timeout;
    let egress = context.egress.clone();
    Ok(A2aAgent::new(name, card, wire, staleness, timeout, egress))
}
