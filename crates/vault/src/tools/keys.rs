//! The `crypto_*` tools for creating and listing keys, and for signing and verifying typed messages.

use super::{
    VaultNeed, VaultProvider, check_length, declaration, failed, inspect_vault, name, open_vault,
};
use crate::crypto::{self, MessageType, PublicKey, Signature};
use crate::error::VaultError;
use crate::manifest::{SecretEntry, SecretKind};
use crate::open_vault::OpenVault;
use lango_core::{Caller, Effect, Risk, Tool, ToolError, ToolOutput};
use lango_secrets::SecretName;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::sync::Arc;

/// A kind of key that can be created.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NewKeyKind {
    /// For crypto_encrypt and crypto_decrypt.
    Symmetric,
    /// For crypto_hmac.
    Hmac,
    /// For signatures.
    Ed25519,
    /// For signatures that Ethereum software verifies.
    Secp256k1,
}

#[derive(Deserialize, JsonSchema)]
struct CreateArguments {
    /// The name of the new key.
    name: String,
    /// The kind of key.
    kind: NewKeyKind,
}

#[derive(Deserialize, JsonSchema)]
struct KeysArguments {}

#[derive(Deserialize, JsonSchema)]
struct SignArguments {
    /// The name of an ed25519-key or secp256k1-key.
    key: String,
    /// The type of the message, which is part of the signed bytes: letters, digits and `._/-`, such as
    /// `release-manifest`.
    #[serde(rename = "type")]
    message_type: String,
    /// The message.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct VerifyArguments {
    /// The public key or address of the signer, from crypto_keys.
    public_key: String,
    /// The type of the message.
    #[serde(rename = "type")]
    message_type: String,
    /// The message.
    message: String,
    /// The signature in hexadecimal digits.
    signature: String,
}

pub(super) fn tools(provider: &Arc<dyn VaultProvider>) -> Vec<Arc<dyn Tool>> {
    vec![create(provider), keys(provider), sign(provider), verify()]
}

fn create(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_create_key",
        "Creates a random key in the user's vault: symmetric, hmac, ed25519 or secp256k1. The key is never shown or \
         exported; crypto tools use it by its name. Returns the public key of a signing key.",
        (Effect::Idempotent, Risk::Moderate),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: CreateArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                let name = name(&arguments.name)?;
                let kind = arguments.kind.secret_kind();
                let open = open_vault(&provider, &caller).await?;
                let entry = match open.create_key(&name, kind).await {
                    // After a crash the call may run a second time.
                    Err(VaultError::IsKey { kind: found, .. }) if found == kind => {
                        let shown = show_key(&open, &name, kind).await?;
                        return Ok(ToolOutput::trusted(format!("it exists already: {shown}")));
                    }
                    created => created.map_err(failed)?,
                };
                let shown = show_key(&open, &entry.name, entry.kind).await?;
                Ok(ToolOutput::trusted(format!("created {shown}")))
            }
        },
        None,
        Some(Box::new(move |caller, _| {
            Box::pin(inspect_vault(
                Arc::clone(&inspect_provider),
                caller,
                VaultNeed::Creatable,
            ))
        })),
    )
}

fn keys(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_keys",
        "Lists the keys of the vault with the public keys or addresses of signing keys.",
        (Effect::Pure, Risk::Safe),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, _: KeysArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                let open = open_vault(&provider, &caller).await?;
                let entries = open.entries().await.map_err(failed)?;
                let is_usable = |entry: &&SecretEntry| {
                    entry.kind.is_key() && entry.kind != SecretKind::PaymentKey
                };
                let mut text = String::new();
                for entry in entries.iter().filter(is_usable) {
                    let shown = show_key(&open, &entry.name, entry.kind).await?;
                    // Writing to a string does not fail.
                    let _ = writeln!(text, "{shown}");
                }
                if text.is_empty() {
                    text.push_str("there are no keys; `crypto_create_key` creates one");
                }
                Ok(ToolOutput::trusted(text))
            }
        },
        None,
        Some(Box::new(move |caller, _| {
            Box::pin(inspect_vault(
                Arc::clone(&inspect_provider),
                caller,
                VaultNeed::Existing,
            ))
        })),
    )
}

fn sign(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_sign",
        "Signs a message with a signing key of the vault. The type of the message is part of the signed bytes: ed25519 signs \
         the lines `lango signed message`, `type: TYPE`, an empty line and the message; secp256k1 signs the same as an \
         Ethereum personal message (EIP-191). Digests and transactions cannot be signed.",
        (Effect::Idempotent, Risk::Dangerous),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: SignArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                check_length(&arguments.message)?;
                let name = name(&arguments.key)?;
                let message_type = message_type(&arguments.message_type)?;
                let open = open_vault(&provider, &caller).await?;
                let kind = signing_kind(&open, &name).await?;
                let operation = format!("sign {}", arguments.message_type);
                let key = open.key(&name, kind, &operation).await.map_err(failed)?;
                let signed = crypto::sign(&key, kind, &message_type, &arguments.message);
                let public = crypto::public_key(&key, kind);
                let (Some(Signature(signature)), Some(public)) = (signed, public) else {
                    return Err(ToolError::trusted(format!("`{name}` is not a valid key")));
                };
                let signature = crypto::to_hex(&signature);
                Ok(ToolOutput::trusted(format!(
                    "signature: {signature}\npublic key: {public}"
                )))
            }
        },
        None,
        Some(Box::new(move |caller, _| {
            Box::pin(inspect_vault(
                Arc::clone(&inspect_provider),
                caller,
                VaultNeed::Existing,
            ))
        })),
    )
}

fn verify() -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_verify",
        "Verifies a signature from crypto_sign with the public key or address of the signer.",
        (Effect::Pure, Risk::Safe),
    );
    declaration.with_code(|_: Caller, arguments: VerifyArguments| async move {
        check_length(&arguments.message)?;
        let message_type = message_type(&arguments.message_type)?;
        let public = PublicKey::parse(arguments.public_key.trim()).ok_or_else(|| {
            ToolError::trusted(
                "a public key has 64 hexadecimal digits; an address has `0x` and 40 digits",
            )
        })?;
        let signature = crypto::from_hex(arguments.signature.trim());
        let signature = signature
            .ok_or_else(|| ToolError::trusted("a signature consists of hexadecimal digits"))?;
        let signature = Signature(signature);
        let is_valid = crypto::verify(&public, &message_type, &arguments.message, &signature);
        let text = if is_valid { "valid" } else { "not valid" };
        Ok(ToolOutput::trusted(text))
    })
}

impl NewKeyKind {
    fn secret_kind(self) -> SecretKind {
        match self {
            Self::Symmetric => SecretKind::SymmetricKey,
            Self::Hmac => SecretKind::HmacKey,
            Self::Ed25519 => SecretKind::Ed25519Key,
            Self::Secp256k1 => SecretKind::Secp256k1Key,
        }
    }
}

fn message_type(text: &str) -> Result<MessageType, ToolError> {
    MessageType::new(text).ok_or_else(|| {
        ToolError::trusted(
            "a message type has up to 100 letters, digits, `.`, `_`, `/` and `-`, such as `release-manifest`",
        )
    })
}

/// Returns the kind of a signing key. Fails for other secrets.
async fn signing_kind(open: &OpenVault, name: &SecretName) -> Result<SecretKind, ToolError> {
    let entries = open.entries().await.map_err(failed)?;
    let entry = entries.iter().find(|entry| entry.name == *name);
    match entry.map(|entry| entry.kind) {
        Some(kind @ (SecretKind::Ed25519Key | SecretKind::Secp256k1Key)) => Ok(kind),
        Some(kind) => Err(ToolError::trusted(format!(
            "`{name}` cannot sign: its kind is {kind}; `crypto_keys` shows the keys"
        ))),
        None => Err(ToolError::trusted(format!(
            "there is no key `{name}`; `crypto_keys` shows the keys, `crypto_create_key` creates one"
        ))),
    }
}

/// Describes a key by its name, kind and public key.
async fn show_key(
    open: &OpenVault,
    name: &SecretName,
    kind: SecretKind,
) -> Result<String, ToolError> {
    if !matches!(kind, SecretKind::Ed25519Key | SecretKind::Secp256k1Key) {
        return Ok(format!("{name} ({kind})"));
    }
    let key = open.key(name, kind, "public key").await.map_err(failed)?;
    let public = crypto::public_key(&key, kind);
    let public = public.map(|public| public.to_string()).unwrap_or_default();
    Ok(format!("{name} ({kind}) {public}"))
}
