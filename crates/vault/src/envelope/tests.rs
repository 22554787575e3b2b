//! Tests that an envelope can be opened only as the record that it was made for.

use super::*;
use crate::manifest::SecretKind;
use lango_core::Timestamp;
use lango_secrets::{Binding, SecretName};
use proptest::prelude::*;

fn vault() -> VaultIdentity {
    VaultIdentity {
        id: [1; 16],
        owner: UserId::from("ann"),
    }
}

fn entry() -> SecretEntry {
    SecretEntry {
        name: SecretName::new("KEY").unwrap(),
        version: 3,
        kind: SecretKind::Text,
        created: Timestamp(10),
        updated: Timestamp(20),
        expires: Some(Timestamp(30)),
        bindings: Vec::new(),
        public_id: None,
        digest: [0; DIGEST_BYTES],
    }
}

/// Seals a value and stores the digest of its envelope in the entry.
fn sealed(key: &Key, entry: &mut SecretEntry, value: &[u8]) -> Vec<u8> {
    let value = SecretValue::new(value);
    let envelope = seal(key, &vault(), entry, &value).unwrap();
    entry.digest = cipher::digest(&envelope);
    envelope
}

#[test]
fn an_envelope_cannot_be_opened_as_another_record_even_if_the_manifest_has_its_digest() {
    let key = cipher::random_key().unwrap();
    let mut own = entry();
    let envelope = sealed(&key, &mut own, b"value");
    assert_eq!(
        open(&key, &vault(), &own, &envelope).unwrap().expose(),
        b"value"
    );
    let edits: [fn(&mut SecretEntry); 7] = [
        |entry| entry.name = SecretName::new("KEX").unwrap(),
        |entry| entry.kind = SecretKind::Token,
        |entry| entry.created = Timestamp(11),
        |entry| entry.updated = Timestamp(21),
        |entry| entry.expires = None,
        |entry| entry.expires = Some(Timestamp(31)),
        |entry| entry.bindings = vec![Binding::field("tool", "field", None).unwrap()],
    ];
    for (number, edit) in edits.iter().enumerate() {
        let mut other = own.clone();
        edit(&mut other);
        assert!(
            open(&key, &vault(), &other, &envelope).is_err(),
            "edit {number}"
        );
    }
    // The envelope contains the version too, so both are changed.
    let mut other = own.clone();
    other.version = 4;
    let mut edited = envelope.clone();
    edited[1..9].copy_from_slice(&4_u64.to_be_bytes());
    other.digest = cipher::digest(&edited);
    assert!(open(&key, &vault(), &other, &edited).is_err());
    let others = [
        VaultIdentity {
            id: [2; 16],
            ..vault()
        },
        VaultIdentity {
            owner: UserId::from("bob"),
            ..vault()
        },
    ];
    for other in &others {
        assert!(open(&key, other, &own, &envelope).is_err(), "{other:?}");
    }
    let other_key = cipher::random_key().unwrap();
    assert!(open(&other_key, &vault(), &own, &envelope).is_err());
}

#[test]
fn every_flipped_byte_is_detected_even_if_the_manifest_has_the_new_digest() {
    let key = cipher::random_key().unwrap();
    let mut own = entry();
    let envelope = sealed(&key, &mut own, b"value");
    for at in 0..envelope.len() {
        for bit in 0..8 {
            let mut flipped = envelope.clone();
            flipped[at] ^= 1 << bit;
            let mut forged = own.clone();
            forged.digest = cipher::digest(&flipped);
            assert!(
                open(&key, &vault(), &forged, &flipped).is_err(),
                "byte {at}, bit {bit}"
            );
            assert!(
                open(&key, &vault(), &own, &flipped).is_err(),
                "byte {at}, bit {bit}"
            );
        }
    }
}

#[test]
fn a_new_wrapping_key_does_not_change_the_sealed_value() {
    let (old, new) = (cipher::random_key().unwrap(), cipher::random_key().unwrap());
    let mut own = entry();
    let envelope = sealed(&old, &mut own, b"value");
    let rewrapped = rewrap(&old, &new, &vault(), &own, &envelope).unwrap();
    let value = PREFIX_BYTES + SEALED_KEY_BYTES;
    assert_eq!(rewrapped[value..], envelope[value..]);
    assert_ne!(rewrapped[..value], envelope[..value]);
    own.digest = cipher::digest(&rewrapped);
    assert_eq!(
        open(&new, &vault(), &own, &rewrapped).unwrap().expose(),
        b"value"
    );
    assert!(open(&old, &vault(), &own, &rewrapped).is_err());
}

proptest! {
    #[test]
    fn any_value_is_restored_and_not_visible_in_its_envelope(value in proptest::collection::vec(any::<u8>(), 8..300)) {
        let key = cipher::random_key().unwrap();
        let mut own = entry();
        let envelope = sealed(&key, &mut own, &value);
        let opened = open(&key, &vault(), &own, &envelope).unwrap();
        prop_assert_eq!(opened.expose(), &value[..]);
        prop_assert!(!envelope.windows(value.len()).any(|part| part == value));
    }

    #[test]
    fn truncated_and_extended_envelopes_are_refused(length in 0_usize..250, filler in any::<u8>()) {
        let key = cipher::random_key().unwrap();
        let mut own = entry();
        let mut envelope = sealed(&key, &mut own, b"some value");
        prop_assume!(length != envelope.len());
        envelope.resize(length, filler);
        let mut forged = own.clone();
        forged.digest = cipher::digest(&envelope);
        prop_assert!(open(&key, &vault(), &own, &envelope).is_err());
        prop_assert!(open(&key, &vault(), &forged, &envelope).is_err());
    }
}
