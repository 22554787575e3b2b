//! The x402 protocol, versions 1 and 2: a host's demand with status 402, and the payment that is sent back. Only the scheme
//! `exact` with USDC on the configured network is supported; everything else in a demand is ignored.

use crate::address::Address;
use crate::amount::Usdc;
use crate::authorization::Authorization;
use crate::error::PaymentError;
use crate::hash::hex;
use crate::network::Network;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_net::{FetchedResponse, HeaderMap, HeaderValue, header::HeaderName};
use serde_json::{Value, json};

/// The header with the demand, in version 2.
const DEMAND_V2: &str = "payment-required";
/// The headers with the payment.
const PAYMENT_V1: &str = "x-payment";
const PAYMENT_V2: &str = "payment-signature";
/// The headers with the host's response to a payment.
const RESPONSES: [&str; 2] = ["payment-response", "x-payment-response"];

/// Maximum size of a demand's header, in bytes.
const MAX_DEMAND_BYTES: usize = 32 << 10;

/// Maximum number of payment options that are considered.
const MAX_OFFERS: usize = 32;

/// The time that a host gets to submit a payment, in seconds.
const VALIDITY_S: std::ops::RangeInclusive<u64> = 30..=600;

/// A demand for payment that lango can meet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Demand {
    pub amount: Usdc,
    pub recipient: Address,
    /// How long the payment must be valid, in seconds.
    pub validity_s: u64,
    version: Version,
    /// The chosen payment option, as the host wrote it.
    accepted: Value,
    /// The resource to pay for, as the host wrote it.
    resource: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Demand {
    /// Parses the demand in a response with status 402 and chooses the first supported payment option.
    pub(crate) fn read(response: &FetchedResponse, network: Network) -> Result<Self, PaymentError> {
        let (version, demand) = match response.headers.get(DEMAND_V2) {
            Some(header) => (Version::Two, decode(header)?),
            None => {
                let body = serde_json::from_slice(&response.body);
                let body =
                    body.map_err(|_| terms("the host demands payment, but not with x402"))?;
                (Version::One, body)
            }
        };
        let number = if version == Version::Two { 2 } else { 1 };
        if demand["x402Version"] != number {
            return Err(terms(
                "the host uses a version of x402 that lango does not support",
            ));
        }
        let offers = demand["accepts"].as_array();
        let offers = offers.map_or(&[][..], Vec::as_slice);
        let mut problem = None;
        for offer in offers.iter().take(MAX_OFFERS) {
            match parse_offer(offer, version, network) {
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
        Err(problem.unwrap_or_else(|| terms("the host offers no payment option")))
    }

    /// Builds the header with the payment.
    pub(crate) fn payment(
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

/// Returns the host's reason for not accepting a payment, if it gives one.
pub(crate) fn refusal(response: &FetchedResponse) -> Option<String> {
    let header = RESPONSES
        .iter()
        .find_map(|name| response.headers.get(*name));
    let result = header.and_then(|header| decode(header).ok());
    let reason = result
        .as_ref()
        .and_then(|result| result["errorReason"].as_str());
    let reason = reason.map(str::to_owned).or_else(|| {
        let body: Value = serde_json::from_slice(&response.body).ok()?;
        Some(body["error"].as_str()?.to_owned())
    })?;
    let plain = reason.chars().filter(|letter| !letter.is_control());
    Some(plain.take(200).collect())
}

/// Parses a payment option: amount, recipient and validity in seconds. Fails if it is not `exact` with USDC on this network.
fn parse_offer(
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
        return Err(terms("lango supports only the scheme `exact`"));
    }
    if offer["network"] != network_name {
        return Err(terms(&format!("lango pays only on {network}")));
    }
    let asset = offer["asset"].as_str().map(Address::parse);
    if !matches!(asset, Some(Ok(asset)) if asset == network.token()) {
        return Err(terms("lango pays only in USDC"));
    }
    let extra = &offer["extra"];
    let expected = [
        ("name", network.token_name()),
        ("version", network.token_version()),
    ];
    for (field, expected) in expected {
        let is_right = extra[field].is_null() || extra[field] == expected;
        if !is_right {
            return Err(terms("the host describes a contract other than USDC"));
        }
    }
    let transfer_method = extra["assetTransferMethod"].as_str();
    if transfer_method.is_some_and(|method| method != "eip3009") {
        return Err(terms("lango supports only EIP-3009 transfers"));
    }
    let units = amount.as_str().filter(|text| {
        !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit())
    });
    let units = units.and_then(|text| text.parse().ok());
    let units: u64 = units.ok_or_else(|| terms("the host's price is not a number"))?;
    if units == 0 {
        return Err(terms("the host's price is zero"));
    }
    let recipient = Address::parse(offer["payTo"].as_str().unwrap_or_default())?;
    let validity = offer["maxTimeoutSeconds"].as_u64().unwrap_or(60);
    let validity = validity.clamp(*VALIDITY_S.start(), *VALIDITY_S.end());
    Ok((Usdc(units), recipient, validity))
}

fn decode(header: &HeaderValue) -> Result<Value, PaymentError> {
    let wrong = || terms("the host's demand is invalid or too long");
    let bytes = header.as_bytes();
    if bytes.len() > MAX_DEMAND_BYTES {
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

    fn response(header: Option<&Value>, body: &Value) -> FetchedResponse {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let encoded = STANDARD.encode(header.to_string());
            let value = HeaderValue::from_str(&encoded).unwrap();
            headers.insert(HeaderName::from_static(DEMAND_V2), value);
        }
        FetchedResponse {
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
    fn a_demand_of_either_version_is_parsed() {
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
    fn a_demand_for_anything_other_than_usdc_on_this_network_is_refused() {
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
