//! The keys under `payment`. Limits are low unless the user raises them.

use std::time::Duration;

use lango_payment::{Network, Usdc, Wei, amount_text};
use toml::de::DeValue;

use super::setting::{Base, Expected, Setting};

/// The keys under `payment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentSettings {
    /// The JSON-RPC endpoint.
    pub rpc_url: RpcUrl,
    /// The network.
    pub network: Network,
    /// The secret with the wallet's key.
    pub wallet: Option<String>,
    /// The most of one payment.
    pub max_per_payment: Usdc,
    /// The most of a day.
    pub max_per_day: Usdc,
    /// The most to one recipient in a day.
    pub max_per_recipient: Usdc,
    /// The most for one purpose in a day.
    pub max_per_purpose: Usdc,
    /// The most that the network fee of one payment may be.
    pub max_gas: Wei,
    /// How long a payment waits to be confirmed.
    pub confirmation_timeout: Duration,
}

impl Default for PaymentSettings {
    fn default() -> Self {
        Self {
            rpc_url: RpcUrl(None),
            network: Network::BaseSepolia,
            wallet: None,
            max_per_payment: Usdc(5_000_000),
            max_per_day: Usdc(20_000_000),
            max_per_recipient: Usdc(10_000_000),
            max_per_purpose: Usdc(10_000_000),
            max_gas: Wei(200_000_000_000_000),
            confirmation_timeout: Duration::from_secs(60),
        }
    }
}

/// `payment.rpcUrl`. Its path and query are not shown: providers put their keys there.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcUrl(pub Option<String>);

impl RpcUrl {
    /// Returns the scheme and the host.
    fn place(&self) -> Option<String> {
        let (scheme, rest) = self.0.as_ref()?.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let hidden = if rest[end..].len() > 1 { "/…" } else { "" };
        let host = rest[..end].rsplit('@').next().unwrap_or_default();
        Some(format!("{scheme}://{host}{hidden}"))
    }
}

impl std::fmt::Debug for RpcUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RpcUrl").field(&self.place()).finish()
    }
}

impl Setting for RpcUrl {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        // Whether it is an address is checked where it is used: an error here would repeat it.
        let url = value.as_str().filter(|url| !url.is_empty());
        let url = url.ok_or("text that is not empty")?;
        self.0 = Some(url.to_owned());
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.place().map(Into::into)
    }
}

impl Setting for Network {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        *self = name.parse().map_err(|_| "`base` or `base-sepolia`")?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Setting for Usdc {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let text = value.as_str().unwrap_or_default();
        *self = Self::parse(text).map_err(
            |_| "an amount of USDC in quotes, such as `\"12.5\"`, with at most 6 decimals",
        )?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(amount_text(self.0).into())
    }
}

impl Setting for Wei {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let text = value.as_str().unwrap_or_default();
        *self = Self::parse(text).ok_or("a fee such as `\"0.0002 ETH\"` or `\"200000 gwei\"`")?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_in_the_address_of_an_endpoint_is_not_shown() {
        let shown = |url: &str| format!("{:?}", RpcUrl(Some(url.to_owned())));
        for url in [
            "https://rpc.example/v2/canary",
            "https://rpc.example?key=canary",
            "https://u:canary@rpc.example",
        ] {
            assert!(
                shown(url).contains("rpc.example") && !shown(url).contains("canary"),
                "{url}"
            );
        }
    }
}
