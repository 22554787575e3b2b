//! From a configured URL to an agent that can be called.

use super::agent::{A2aAgent, Doubt};
use super::card::Card;
use super::fault::{CardFault, SkippedRemote};
use super::fetch;
use super::http::{Clients, Token};
use super::origin;
use super::settings::{Patience, RemoteSettings};
use super::wire::{Wire, WireParts};
use futures_util::future::join_all;
use lango_net::Egress;
use std::sync::Arc;
use tokio::sync::Notify;

/// What agents have in common.
#[derive(Default)]
pub(crate) struct Means {
    pub clients: Clients,
    /// Checks what cards name, and fetches files at URLs.
    pub egress: Egress,
    /// Told when a call makes it doubtful that a card still holds.
    pub doubts: Arc<Notify>,
}

/// An agent, or why there is none.
pub(crate) type Connected = Result<Arc<A2aAgent>, SkippedRemote>;

/// Reads one card, within `patience.card`.
pub async fn connect(
    settings: &RemoteSettings,
    patience: &Patience,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    connect_with(settings, patience, &Means::default()).await
}

/// Reads all cards at once. The results are in the order of the settings, and all are there after `patience.card`.
pub(crate) async fn connect_all(
    settings: &[RemoteSettings],
    patience: &Patience,
    means: &Means,
) -> Vec<Connected> {
    let all = settings.iter();
    join_all(all.map(|one| connect_with(one, patience, means))).await
}

async fn connect_with(
    settings: &RemoteSettings,
    patience: &Patience,
    means: &Means,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    let agent = tokio::time::timeout(patience.card, agent(settings, patience, means)).await;
    let agent = agent.unwrap_or_else(|_elapsed| {
        Err(CardFault::Slow {
            after_ms: u64::try_from(patience.card.as_millis()).unwrap_or(u64::MAX),
        })
    });
    agent.map(Arc::new).map_err(|reason| SkippedRemote {
        name: settings.name.clone(),
        reason,
    })
}

async fn agent(
    settings: &RemoteSettings,
    patience: &Patience,
    means: &Means,
) -> Result<A2aAgent, CardFault> {
    let home = fetch::card_url(&settings.card_url)?;
    let is_open = home.scheme() != "https" && !origin::is_this_machine(&home);
    let secret = match (&settings.token, settings.headers.first()) {
        (Some(_), _) => Some(settings.token_source.clone()),
        (None, Some((name, _))) => Some(format!("`{name}` of `headersEnv`")),
        (None, None) => None,
    };
    if let (true, Some(source_of_token)) = (is_open, secret) {
        return Err(CardFault::OpenToken {
            url: origin::shown(&home),
            source_of_token,
        });
    }
    let token = Token::new(settings, home.clone());
    let fetched = fetch::fetch(settings, &token, means, patience).await?;
    let card = Card::read(&fetched)?;
    let interface = &card.interface;
    let admitted = origin::admit(&home, &fetched.url, &interface.url, &means.egress).await;
    let route = admitted.map_err(|why| CardFault::InterfaceRefused {
        url: origin::shown(&interface.url),
        why,
    })?;
    let client = means.clients.for_route(&interface.url, &route, patience);
    let client = client.map_err(|detail| CardFault::NoClient { detail })?;
    let wire = Wire::new(WireParts {
        client,
        interface: interface.clone(),
        token,
        masks: settings.masks.clone(),
        patience: Patience {
            reply: patience.reply.max(settings.timeout.unwrap_or_default()),
            ..*patience
        },
    });
    let doubt = Doubt::new(Arc::clone(&means.doubts));
    let name = settings.name.clone();
    let timeout = settings.timeout;
    let egress = means.egress.clone();
    Ok(A2aAgent::new(name, card, wire, doubt, timeout, egress))
}
