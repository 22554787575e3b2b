//! The keys under `payment`. Limits are low unless the user raises them.

use std::time::Duration;

use lango_payment::{Network, Usdc, Wei, amount_text};
use toml::de::DeValue;

use super::setting::{Expected, Setting, ValueContext};

/// The keys under `payment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentSettings {
    pub rpc_url: RpcUrl,
    pub network: Network,
    /// The secret that holds the wallet's private key, as `secret:NAME`.
    pub wallet: Option<String>,
    pub max_per_payment: Usdc,
    /// The most per day (UTC).
    pub max_per_day: Usdc,
    /// The most per recipient and day.
    pub max_per_recipient: Usdc,
    /// The most per purpose and day.
    pub max_per_purpose: Usdc,
    /// The highest network fee of one payment.
    pub max_gas: Wei,
    /// How long to wait for a payment's confirmation before its outcome counts as unknown.
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

/// `payment.rpcUrl`. Its path and query are never shown, because providers put API keys there.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcUrl(pub Option<String>);

impl RpcUrl {
    /// Returns the scheme and the host, for display.
    fn scheme_and_host(&self) -> Option<String> {
        let (scheme, rest) = self.0.as_ref()?.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let hidden = if rest[end..].len() > 1 { "/…" } else { "" };
        let host = rest[..end].rsplit('@').next().unwrap_or_default();
        Some(format!("{scheme}://{host}{hidden}"))
    }
}

impl std::fmt::Debug for RpcUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RpcUrl")
            .field(&self.scheme_and_host())
            .finish()
    }
}

impl Setting for RpcUrl {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        // The address is validated where it is used: an error here would print it with its key.
        let url = value.as_str().filter(|url| !url.is_empty());
        let url = url.ok_or("text that is not empty")?;
        self.0 = Some(url.to_owned());
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.scheme_and_host().map(Into::into)
    }
}

impl Setting for Network {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let name = value.as_str().unwrap_or_default();
        *self = name.parse().map_err(|_| "`base` or `base-sepolia`")?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Setting for Usdc {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let text = value.as_str().unwrap_or_default();
        *self = Self::parse(text).map_err(
            |_| "an amount of USDC in quotes, such as `\"12.5\"`, with at most 6 decimals",
        )?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(amount_text(self.0).into())
    }
}

impl Setting for Wei {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let text = value.as_str().unwrap_or_default();
        *self = Self::parse(text).ok_or("a fee such as `\"0.0002 ETH\"` or `\"200000 gwei\"`")?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_key_in_an_endpoint_address_is_not_shown() {
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
