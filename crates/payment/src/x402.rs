//! The wire of x402, versions 1 and 2: what a host demands with status 402, and what is sent back. Only the scheme `exact` with
//! USDC on the configured network is understood; of what a host says, nothing else is used.

use crate::address::Address;
use crate::amount::Usdc;
use crate::authorization::Authorization;
use crate::error::PaymentError;
use crate::hash::hex;
use crate::network::Network;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_net::{Fetched, HeaderMap, HeaderValue, header::HeaderName};
use serde_json::{Value, json};

/// Header of version 2 with the demand.
const DEMAND_V2: &str = "payment-required";
/// Headers with the payment.
const PAYMENT_V1: &str = "x-payment";
const PAYMENT_V2: &str = "payment-signature";
/// Headers with what the host did with it.
const RESPONSES: [&str; 2] = ["payment-response", "x-payment-response"];

/// The longest header of a demand in bytes.
const MOST_DEMAND: usize = 32 << 10;

/// The most ways to pay that are looked at.
const MOST_OFFERS: usize = 32;

/// The shortest and the longest time that a host gets to submit a payment, in seconds.
const VALIDITY_S: std::ops::RangeInclusive<u64> = 30..=600;

/// A demand that can be met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Demand {
    pub amount: Usdc,
    pub recipient: Address,
    /// How long the payment must be valid, in seconds.
    pub validity_s: u64,
    version: Version,
    /// The chosen way to pay, as the host wrote it.
    accepted: Value,
    /// What is paid for, as the host wrote it.
    resource: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Demand {
    /// Reads the demand of a response with status 402 and chooses the first way to pay that is understood.
    pub fn read(response: &Fetched, network: Network) -> Result<Self, PaymentError> {
        let (version, demand) = match response.headers.get(DEMAND_V2) {
            Some(header) => (Version::Two, decode(header)?),
            None => {
                let body = serde_json::from_slice(&response.body);
                let body = body.map_err(|_| {
                    terms("the host wants to be paid and does not say how (no x402)")
                })?;
                (Version::One, body)
            }
        };
        let number = if version == Version::Two { 2 } else { 1 };
        if demand["x402Version"] != number {
            return Err(terms(
                "the host uses a version of x402 that lango does not know",
            ));
        }
        let offers = demand["accepts"].as_array();
        let offers = offers.map_or(&[][..], Vec::as_slice);
        let mut problem = None;
        for offer in offers.iter().take(MOST_OFFERS) {
            match understand(offer, version, network) {
                Ok((amount, recipient, validity_s)) => {
                    return Ok(Self {
                        amount,
                        recipient,
                        validity_s,
                        version,
                        accepted: offer.clone(),
                        resource: demand["resource"].clone(),
                    });
                }
                Err(found) => problem = problem.or(Some(found)),
            }
        }
        Err(problem.unwrap_or_else(|| terms("the host offers no way to pay")))
    }

    /// Returns the header that pays.
    pub fn payment(
        &self,
        authorization: &Authorization,
        signature: &[u8; 65],
    ) -> Result<HeaderMap, PaymentError> {
        let payload = json!({
            "signature": format!("0x{}", hex(signature)),
            "authorization": {
                "from": authorization.from.to_string(),
                "to": authorization.to.to_string(),
                "value": authorization.amount.to_string(),
                "validAfter": "0",
                "validBefore": authorization.valid_before.to_string(),
                "nonce": format!("0x{}", hex(&authorization.nonce)),
            },
        });
        let (name, message) = match self.version {
            Version::One => (
                PAYMENT_V1,
                json!({
                    "x402Version": 1,
                    "scheme": "exact",
                    "network": authorization.network.name(),
                    "payload": payload,
                }),
            ),
            Version::Two => {
                let mut message = json!({
                    "x402Version": 2,
                    "accepted": self.accepted,
                    "payload": payload,
                });
                if !self.resource.is_null() {
                    message["resource"] = self.resource.clone();
                }
                (PAYMENT_V2, message)
            }
        };
        let encoded = STANDARD.encode(message.to_string());
        let value = HeaderValue::from_str(&encoded);
        let value = value.map_err(|_| terms("the payment does not fit into a header"))?;
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), value);
        Ok(headers)
    }
}

/// Returns why a host did not accept a payment, if it says so.
pub(crate) fn refusal(response: &Fetched) -> Option<String> {
    let header = RESPONSES
        .iter()
        .find_map(|name| response.headers.get(*name));
    let said = header.and_then(|header| decode(header).ok());
    let said = said.as_ref().and_then(|said| said["errorReason"].as_str());
    let said = said.map(str::to_owned).or_else(|| {
        let body: Value = serde_json::from_slice(&response.body).ok()?;
        Some(body["error"].as_str()?.to_owned())
    })?;
    let plain = said.chars().filter(|letter| !letter.is_control());
    Some(plain.take(200).collect())
}

/// Reads one way to pay: amount, recipient and time. Fails if it is not `exact` with USDC on this network.
fn understand(
    offer: &Value,
    version: Version,
    network: Network,
) -> Result<(Usdc, Address, u64), PaymentError> {
    let chain = format!("eip155:{}", network.chain_id());
    let (network_name, amount) = match version {
        Version::One => (network.name(), &offer["maxAmountRequired"]),
        Version::Two => (chain.as_str(), &offer["amount"]),
    };
    if offer["scheme"] != "exact" {
        return Err(terms("lango pays by the scheme `exact` only"));
    }
    if offer["network"] != network_name {
        return Err(terms(&format!("lango pays on {network} only")));
    }
    let asset = offer["asset"].as_str().map(Address::parse);
    if !matches!(asset, Some(Ok(asset)) if asset == network.token()) {
        return Err(terms("lango pays with USDC only"));
    }
    let extra = &offer["extra"];
    let expected = [
        ("name", network.token_name()),
        ("version", network.token_version()),
    ];
    for (field, expected) in expected {
        let is_right = extra[field].is_null() || extra[field] == expected;
        if !is_right {
            return Err(terms(
                "the host describes another contract than that of USDC",
            ));
        }
    }
    let is_permit = extra["assetTransferMethod"].as_str();
    if is_permit.is_some_and(|method| method != "eip3009") {
        return Err(terms("lango pays by EIP-3009 only"));
    }
    let units = amount.as_str().filter(|text| {
        !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit())
    });
    let units = units.and_then(|text| text.parse().ok());
    let units: u64 = units.ok_or_else(|| terms("the host's price is not a number"))?;
    if units == 0 {
        return Err(terms("the host wants to be paid nothing"));
    }
    let recipient = Address::parse(offer["payTo"].as_str().unwrap_or_default())?;
    let validity = offer["maxTimeoutSeconds"].as_u64().unwrap_or(60);
    let validity = validity.clamp(*VALIDITY_S.start(), *VALIDITY_S.end());
    Ok((Usdc(units), recipient, validity))
}

fn decode(header: &HeaderValue) -> Result<Value, PaymentError> {
    let wrong = || terms("the host's demand cannot be read");
    let bytes = header.as_bytes();
    if bytes.len() > MOST_DEMAND {
        return Err(wrong());
    }
    let decoded = STANDARD.decode(bytes).map_err(|_| wrong())?;
    serde_json::from_slice(&decoded).map_err(|_| wrong())
}

fn terms(detail: &str) -> PaymentError {
    PaymentError::Terms {
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_net::Url;

    fn response(header: Option<&Value>, body: &Value) -> Fetched {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let encoded = STANDARD.encode(header.to_string());
            let value = HeaderValue::from_str(&encoded).unwrap();
            headers.insert(HeaderName::from_static(DEMAND_V2), value);
        }
        Fetched {
            final_url: Url::parse("https://example.com/").unwrap(),
            status: 402,
            headers,
            body: body.to_string().into_bytes(),
            was_cut: false,
            redirects: Vec::new(),
            was_downgraded: false,
        }
    }

    fn offer() -> Value {
        json!({
            "scheme": "exact",
            "network": "base-sepolia",
            "maxAmountRequired": "10000",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
            "maxTimeoutSeconds": 60,
            "extra": { "name": "USDC", "version": "2" },
        })
    }

    fn read_v1(offers: Value) -> Result<Demand, PaymentError> {
        let body = json!({ "x402Version": 1, "accepts": offers });
        Demand::read(&response(None, &body), Network::BaseSepolia)
    }

    #[test]
    fn a_demand_of_either_version_is_read() {
        let one = read_v1(json!([offer()])).unwrap();
        assert_eq!((one.amount, one.validity_s), (Usdc(10_000), 60));
        let mut second = offer();
        second["network"] = "eip155:84532".into();
        second["amount"] = "10001".into();
        let header = json!({ "x402Version": 2, "accepts": [offer(), second] });
        let read = Demand::read(&response(Some(&header), &json!({})), Network::BaseSepolia);
        assert_eq!(read.unwrap().amount, Usdc(10_001));
    }

    #[test]
    fn a_demand_for_anything_but_usdc_on_this_network_is_refused() {
        let changes: [(&str, Value); 12] = [
            ("scheme", "upto".into()),
            ("network", "base".into()),
            ("network", Value::Null),
            ("asset", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".into()),
            ("asset", Value::Null),
            ("maxAmountRequired", 10_000.into()),
            ("maxAmountRequired", "1e3".into()),
            ("maxAmountRequired", "-1".into()),
            ("maxAmountRequired", "0".into()),
            ("payTo", "0x209693Bc6afc0C5328bA36FaF03C514EF312287c".into()),
            ("payTo", Value::Null),
            ("extra", json!({ "name": "USD Coin", "version": "2" })),
        ];
        for (field, value) in changes {
            let mut changed = offer();
            changed[field] = value.clone();
            assert!(read_v1(json!([changed])).is_err(), "{field}: {value}");
        }
        assert!(read_v1(json!([])).is_err() && read_v1(json!("x")).is_err());
    }
}
