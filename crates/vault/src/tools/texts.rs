//! Hashes, message authentication codes and encryption of texts.

use super::{
    VaultNeed, VaultProvider, check_length, declaration, failed, inspect_vault, name, open_vault,
};
use crate::crypto::{self, HashAlgorithm};
use crate::key::Key;
use crate::manifest::SecretKind;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lango_core::{Caller, Effect, Inspection, Risk, Tool, ToolError, ToolOutput};
use lango_secrets::SecretName;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct HashArguments {
    /// The text, as UTF-8.
    text: String,
    /// The hash function.
    algorithm: HashAlgorithm,
}

#[derive(Deserialize, JsonSchema)]
struct HmacArguments {
    /// The name of an hmac-key.
    key: String,
    /// The text, as UTF-8.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct EncryptArguments {
    /// The name of a symmetric-key.
    key: String,
    /// The text to encrypt.
    text: String,
    /// A context that is authenticated but not encrypted; decrypting requires the same context.
    #[serde(default)]
    context: String,
}

#[derive(Deserialize, JsonSchema)]
struct DecryptArguments {
    /// The name of the symmetric-key that encrypted it.
    key: String,
    /// The result of `crypto_encrypt`.
    encrypted: String,
    /// The context that was given when it was encrypted.
    #[serde(default)]
    context: String,
}

pub(super) fn tools(provider: &Arc<dyn VaultProvider>) -> Vec<Arc<dyn Tool>> {
    let hash = declaration(
        "crypto_hash",
        "Hashes a text: sha256, sha512, blake2b (512 bits) or keccak256. The result is in hexadecimal digits.",
        (Effect::Pure, Risk::Safe),
    );
    let hash = hash.with_code(|_: Caller, arguments: HashArguments| async move {
        check_length(&arguments.text)?;
        let digest = arguments.algorithm.digest(arguments.text.as_bytes());
        Ok(ToolOutput::trusted(crypto::to_hex(&digest)))
    });
    vec![hash, hmac(provider), encrypt(provider), decrypt(provider)]
}

fn hmac(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_hmac",
        "Computes the HMAC-SHA-256 of a text with a key from crypto_create_key, in hexadecimal digits.",
        (Effect::Idempotent, Risk::Moderate),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: HmacArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                check_length(&arguments.text)?;
                let (_, key) = key(
                    &provider,
                    &caller,
                    &arguments.key,
                    SecretKind::HmacKey,
                    "hmac",
                )
                .await?;
                let code = crypto::hmac(&key, arguments.text.as_bytes());
                Ok(ToolOutput::trusted(crypto::to_hex(&code)))
            }
        },
        None,
        Some(Box::new(move |caller, _| {
            Box::pin(inspect(&inspect_provider, caller))
        })),
    )
}

fn encrypt(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_encrypt",
        "Encrypts a text with a symmetric key from crypto_create_key (XChaCha20-Poly1305). Only crypto_decrypt with \
         the same key and context can decrypt the result.",
        (Effect::Idempotent, Risk::Safe),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: EncryptArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                check_length(&arguments.text)?;
                let kind = SecretKind::SymmetricKey;
                let (name, key) = key(&provider, &caller, &arguments.key, kind, "encrypt").await?;
                let sealed = crypto::encrypt(&key, &name, &arguments.context, &arguments.text);
                let sealed = sealed.map_err(failed)?;
                Ok(ToolOutput::trusted(URL_SAFE_NO_PAD.encode(sealed)))
            }
        },
        None,
        Some(Box::new(move |caller, _| {
            Box::pin(inspect(&inspect_provider, caller))
        })),
    )
}

fn decrypt(provider: &Arc<dyn VaultProvider>) -> Arc<dyn Tool> {
    let declaration = declaration(
        "crypto_decrypt",
        "Decrypts a result of crypto_encrypt with the same key and context. Nothing else can be decrypted, in particular \
         not stored secrets.",
        (Effect::Idempotent, Risk::Moderate),
    );
    let (run_provider, inspect_provider) = (Arc::clone(provider), Arc::clone(provider));
    declaration.with_parts(
        move |caller: Caller, arguments: DecryptArguments| {
            let provider = Arc::clone(&run_provider);
            async move {
                let refused = || {
                    ToolError::trusted(
                        "decryption failed: the key, the context or the text differs from that of crypto_encrypt",
                    )
                };
                check_length(&arguments.encrypted)?;
                let kind = SecretKind::SymmetricKey;
                let (name, key) = key(&provider, &caller, &arguments.key, kind, "decrypt").await?;
                let sealed = URL_SAFE_NO_PAD.decode(arguments.encrypted.trim());
                let sealed = sealed.map_err(|_| refused())?;
                let decrypted = crypto::decrypt(&key, &name, &arguments.context, &sealed);
                let decrypted = decrypted.ok_or_else(refused)?;
                let text = decrypted.expose_text().ok_or_else(refused)?;
                // The encrypted text may come from anywhere, so it is untrusted.
                Ok(ToolOutput::from(text.to_owned()))
            }
        },
        None,
        Some(Box::new(move |caller, _| Box::pin(inspect(&inspect_provider, caller)))),
    )
}

fn inspect(
    provider: &Arc<dyn VaultProvider>,
    caller: Caller,
) -> impl Future<Output = Inspection> + Send + use<> {
    inspect_vault(Arc::clone(provider), caller, VaultNeed::Existing)
}

async fn key(
    provider: &Arc<dyn VaultProvider>,
    caller: &Caller,
    text: &str,
    kind: SecretKind,
    operation: &str,
) -> Result<(SecretName, Key), ToolError> {
    let name = name(text)?;
    let open = open_vault(provider, caller).await?;
    let key = open.key(&name, kind, operation).await.map_err(failed)?;
    Ok((name, key))
}
