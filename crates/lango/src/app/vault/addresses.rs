//! The addresses of wallets, which are stored unencrypted beside the keys. Older versions stored none; they are added
//! when the vault is opened.

use crate::app::failure::Failure;
use lango_payment::{Address, address_of, parse_key};
use lango_vault::{OpenVault, SealedVault, SecretEntry, SecretKind, SecretName};

/// Derives the address of a wallet from its key.
pub async fn derive_address(open: &OpenVault, name: &SecretName) -> Result<Address, Failure> {
    let value = open.value(name).await?;
    let key = parse_key(value.expose_text().unwrap_or_default())?;
    Ok(address_of(&key)?)
}

/// Stores missing addresses of wallets. A wallet whose key is invalid stays without one.
pub(super) async fn add_missing(sealed: &SealedVault, open: &OpenVault) {
    let lacks_address =
        |entry: &&SecretEntry| entry.kind == SecretKind::PaymentKey && entry.public_id.is_none();
    for entry in sealed.entries().filter(lacks_address) {
        if let Ok(address) = derive_address(open, &entry.name).await {
            // If this fails, the next unlock tries again.
            let _ = open
                .add_public_id(&entry.name, address.to_string().into())
                .await;
        }
    }
}
