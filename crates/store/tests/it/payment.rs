//! Tests of the ledger of payments, on every database.

use crate::ROOT;
use lango_core::{
    BudgetKey, BudgetUse, NewTransaction, Payment, PaymentAccount, PaymentChange,
    PaymentChangeOutcome, PaymentLimit, PaymentLimits, PaymentQuery, PaymentState, PaymentStore,
    Reservation, ReservationOutcome, SessionId, SignedTransaction, Timestamp, TotalsQuery, UserId,
};
use lango_testkit::postgres;
use std::sync::Arc;

macro_rules! over_every_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(std::sync::Arc::new(lango_store::Store::in_memory())).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let address = format!("sqlite:{}", folder.path().join("lango.db").display());
                super::$name(super::open(&address)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(super::open(&super::postgres::fresh_schema())).await;
            })+
        }
    };
}

over_every_store!(
    a_payment_is_read_as_it_was_reserved_and_changed,
    a_payment_is_reserved_once,
    racing_payments_exceed_no_limit_by_one_unit,
    every_limit_refuses_and_reports_what_is_left,
    a_failed_payment_no_longer_counts_and_every_other_one_does,
    a_change_for_another_revision_or_a_step_back_changes_nothing,
    an_account_nonce_is_taken_once_and_only_with_its_transaction,
    racing_requests_spend_a_budget_once,
    a_budget_applies_only_to_its_session_host_and_user,
);

type Store = Arc<dyn PaymentStore>;

const LIMITS: PaymentLimits = PaymentLimits {
    payment: 50,
    day: 100,
    recipient: 80,
    purpose: 60,
};

fn open(address: &str) -> Store {
    Arc::new(lango_store::Store::at(address, ROOT.into()).unwrap())
}

fn account() -> PaymentAccount {
    PaymentAccount {
        network: "base-sepolia".into(),
        wallet: "0xaa".into(),
    }
}

fn payment(id: &str, amount: u64) -> Payment {
    Payment {
        id: id.into(),
        account: account(),
        user: "ann".into(),
        session: "s_1".into(),
        recipient: "0xbb".into(),
        purpose: "a domain".into(),
        host: None,
        budget: None,
        amount,
        day: 20_000,
        state: PaymentState::Reserved,
        valid_before: 2_000_000_000,
        authorization: None,
        transaction: None,
        detail: "reserved".into(),
        revision: 0,
        created: Timestamp(5),
        updated: Timestamp(5),
    }
}

fn reservation(payment: Payment) -> Reservation {
    Reservation {
        payment,
        limits: LIMITS,
        budget: None,
    }
}

async fn reserve(store: &Store, payment: Payment) -> ReservationOutcome {
    let reserved = store.reserve_payment(reservation(payment)).await;
    reserved.unwrap()
}

async fn stored(store: &Store, id: &str) -> Payment {
    let found = store.payments(PaymentQuery::Id(id.into()), 1).await;
    found.unwrap().remove(0)
}

fn change(payment: &Payment, state: PaymentState) -> PaymentChange {
    PaymentChange {
        id: payment.id.clone(),
        expected: payment.revision,
        state,
        detail: "changed".into(),
        time: Timestamp(9),
        authorization: None,
        transaction: None,
    }
}

fn transaction(nonce: u64, expected_next: Option<u64>) -> Option<NewTransaction> {
    Some(NewTransaction {
        signed: SignedTransaction {
            nonce,
            raw: vec![0, 0xff],
            hashes: "cc".into(),
        },
        expected_next,
    })
}

async fn totals(store: &Store) -> [u64; 3] {
    let status = store.payment_account(TotalsQuery {
        account: account(),
        day: 20_000,
        recipient: "0xbb".into(),
        purpose: "a domain".into(),
    });
    let totals = status.await.unwrap().totals;
    [totals.day, totals.recipient, totals.purpose]
}

async fn next_nonce(store: &Store) -> u64 {
    let status = store.payment_account(TotalsQuery {
        account: account(),
        day: 1,
        recipient: "".into(),
        purpose: "".into(),
    });
    status.await.unwrap().next_nonce
}

async fn a_payment_is_read_as_it_was_reserved_and_changed(store: Store) {
    let reserved = reserve(&store, payment("01", 7)).await;
    assert_eq!(reserved, ReservationOutcome::New(payment("01", 7)));
    assert_eq!(stored(&store, "01").await, payment("01", 7));
    let signed = PaymentChange {
        authorization: Some(vec![1, 2]),
        transaction: transaction(3, Some(0)),
        ..change(&payment("01", 7), PaymentState::Signed)
    };
    let applied = store.change_payment(signed).await.unwrap();
    assert_eq!(applied, PaymentChangeOutcome::Applied);
    let mut expected = payment("01", 7);
    expected.state = PaymentState::Signed;
    expected.detail = "changed".into();
    expected.updated = Timestamp(9);
    expected.revision = 1;
    expected.authorization = Some(vec![1, 2]);
    expected.transaction = transaction(3, None).map(|new| new.signed);
    assert_eq!(stored(&store, "01").await, expected);
    // Fields that a change does not set stay unchanged.
    let sent = change(&expected, PaymentState::Submitted);
    store.change_payment(sent).await.unwrap();
    let sent = stored(&store, "01").await;
    assert_eq!(sent.transaction, expected.transaction);
    assert_eq!(sent.authorization, expected.authorization);
    reserve(&store, payment("02", 1)).await;
    let open = store.payments(PaymentQuery::Open(account()), 9);
    let ids: Vec<_> = open.await.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(ids, ["02".into(), "01".into()]);
    let settled = change(&sent, PaymentState::Settled);
    store.change_payment(settled).await.unwrap();
    let open = store.payments(PaymentQuery::Open(account()), 9);
    assert_eq!(open.await.unwrap().len(), 1);
    let newest = store.payments(PaymentQuery::Newest(account()), 9);
    assert_eq!(newest.await.unwrap().len(), 2);
}

async fn a_payment_is_reserved_once(store: Store) {
    reserve(&store, payment("01", 7)).await;
    let other = payment("01", 9);
    assert_eq!(
        reserve(&store, other).await,
        ReservationOutcome::Existing(payment("01", 7))
    );
    assert_eq!(totals(&store).await, [7, 7, 7]);
}

async fn racing_payments_exceed_no_limit_by_one_unit(store: Store) {
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..60_u64 {
        let store = Arc::clone(&store);
        racing.spawn(async move {
            let mut one = payment(&format!("{number:02}"), 3);
            one.recipient = format!("0x{number}").into();
            one.purpose = format!("for {number}").into();
            matches!(reserve(&store, one).await, ReservationOutcome::New(_))
        });
    }
    let won = racing.join_all().await;
    assert_eq!(won.iter().filter(|won| **won).count(), 33);
    assert_eq!(totals(&store).await[0], 99);
    let last = reserve(&store, payment("last", 1)).await;
    assert!(matches!(last, ReservationOutcome::New(_)));
    let over = reserve(&store, payment("over", 1)).await;
    let limit = PaymentLimit::Day;
    assert_eq!(over, ReservationOutcome::Refused { limit, left: 0 });
}

async fn every_limit_refuses_and_reports_what_is_left(store: Store) {
    let refused = |limit, left| ReservationOutcome::Refused { limit, left };
    let too_much = reserve(&store, payment("01", 51)).await;
    assert_eq!(too_much, refused(PaymentLimit::Payment, 50));
    reserve(&store, payment("02", 50)).await;
    let of_purpose = reserve(&store, payment("03", 11)).await;
    assert_eq!(of_purpose, refused(PaymentLimit::Purpose, 10));
    let mut other = payment("04", 31);
    other.purpose = "else".into();
    let of_recipient = reserve(&store, other.clone()).await;
    assert_eq!(of_recipient, refused(PaymentLimit::Recipient, 30));
    other.recipient = "0xcc".into();
    other.amount = 50;
    assert!(matches!(
        reserve(&store, other.clone()).await,
        ReservationOutcome::New(_)
    ));
    other.id = "05".into();
    other.amount = 1;
    assert_eq!(
        reserve(&store, other.clone()).await,
        refused(PaymentLimit::Day, 0)
    );
    other.day += 1;
    assert!(matches!(
        reserve(&store, other).await,
        ReservationOutcome::New(_)
    ));
    assert_eq!(totals(&store).await, [100, 50, 50]);
}

async fn a_failed_payment_no_longer_counts_and_every_other_one_does(store: Store) {
    let mut one = payment("01", 10);
    reserve(&store, one.clone()).await;
    for state in [
        PaymentState::Signed,
        PaymentState::Submitted,
        PaymentState::Unknown,
    ] {
        store.change_payment(change(&one, state)).await.unwrap();
        one = stored(&store, "01").await;
        assert_eq!(totals(&store).await, [10; 3]);
    }
    let failed = change(&one, PaymentState::Failed);
    store.change_payment(failed).await.unwrap();
    assert_eq!(totals(&store).await, [0; 3]);
}

async fn a_change_for_another_revision_or_a_step_back_changes_nothing(store: Store) {
    let one = payment("01", 10);
    reserve(&store, one.clone()).await;
    let apply = |change| store.change_payment(change);
    let outdated = PaymentChangeOutcome::Outdated;
    let early = change(&one, PaymentState::Submitted);
    assert_eq!(apply(early).await.unwrap(), outdated);
    let signed = change(&one, PaymentState::Signed);
    assert_eq!(
        apply(signed.clone()).await.unwrap(),
        PaymentChangeOutcome::Applied
    );
    assert_eq!(apply(signed).await.unwrap(), outdated);
    let two = stored(&store, "01").await;
    let settled = change(&two, PaymentState::Settled);
    assert_eq!(apply(settled).await.unwrap(), PaymentChangeOutcome::Applied);
    let three = stored(&store, "01").await;
    for state in [PaymentState::Failed, PaymentState::Unknown] {
        assert_eq!(apply(change(&three, state)).await.unwrap(), outdated);
    }
    let missing = change(&payment("02", 1), PaymentState::Failed);
    assert_eq!(apply(missing).await.unwrap(), outdated);
}

async fn an_account_nonce_is_taken_once_and_only_with_its_transaction(store: Store) {
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..8_u64 {
        let one = payment(&format!("{number}"), 1);
        reserve(&store, one.clone()).await;
        let store = Arc::clone(&store);
        racing.spawn(async move {
            loop {
                let next = next_nonce(&store).await;
                let signed = PaymentChange {
                    transaction: transaction(next, Some(next)),
                    ..change(&one, PaymentState::Signed)
                };
                match store.change_payment(signed).await.unwrap() {
                    PaymentChangeOutcome::Applied => return next,
                    PaymentChangeOutcome::Outdated => tokio::task::yield_now().await,
                }
            }
        });
    }
    let mut taken = racing.join_all().await;
    taken.sort_unstable();
    assert_eq!(taken, (0..8).collect::<Vec<_>>());
    // A nonce may skip some, if other software has used them.
    let ahead = payment("ahead", 1);
    reserve(&store, ahead.clone()).await;
    let signed = PaymentChange {
        transaction: transaction(20, Some(8)),
        ..change(&ahead, PaymentState::Signed)
    };
    store.change_payment(signed).await.unwrap();
    assert_eq!(next_nonce(&store).await, 21);
    // A replacement must have the same nonce.
    let stored = stored(&store, "ahead").await;
    let other = PaymentChange {
        transaction: transaction(19, None),
        ..change(&stored, PaymentState::Signed)
    };
    let outdated = store.change_payment(other).await.unwrap();
    assert_eq!(outdated, PaymentChangeOutcome::Outdated);
    let same = PaymentChange {
        transaction: transaction(20, None),
        ..change(&stored, PaymentState::Signed)
    };
    let applied = store.change_payment(same).await.unwrap();
    assert_eq!(applied, PaymentChangeOutcome::Applied);
    assert_eq!(next_nonce(&store).await, 21);
}

fn for_host(id: &str, amount: u64, budget: BudgetUse) -> Reservation {
    let mut payment = payment(id, amount);
    payment.host = Some("example.com".into());
    Reservation {
        budget: Some(budget),
        ..reservation(payment)
    }
}

fn key() -> BudgetKey {
    BudgetKey {
        account: account(),
        user: UserId::from("ann"),
        session: SessionId::from("s_1"),
        host: "example.com".into(),
    }
}

async fn racing_requests_spend_a_budget_once(store: Store) {
    let none = store.reserve_payment(for_host("x", 1, BudgetUse::Existing));
    let limit = PaymentLimit::Budget;
    assert_eq!(
        none.await.unwrap(),
        ReservationOutcome::Refused { limit, left: 0 }
    );
    let first = store.reserve_payment(for_host("first", 4, BudgetUse::New(20)));
    let ReservationOutcome::New(first) = first.await.unwrap() else {
        panic!("it is reserved");
    };
    assert_eq!(first.budget, Some("first".into()));
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..10 {
        let store = Arc::clone(&store);
        racing.spawn(async move {
            let one = for_host(&number.to_string(), 3, BudgetUse::Existing);
            matches!(
                store.reserve_payment(one).await.unwrap(),
                ReservationOutcome::New(_)
            )
        });
    }
    let won = racing.join_all().await;
    assert_eq!(won.iter().filter(|won| **won).count(), 5);
    assert_eq!(store.payment_budget(key()).await.unwrap(), 1);
    let over = store.reserve_payment(for_host("over", 2, BudgetUse::Existing));
    assert_eq!(
        over.await.unwrap(),
        ReservationOutcome::Refused { limit, left: 1 }
    );
    // Repeating the call that allowed the budget does not increase it.
    let again = store.reserve_payment(for_host("first", 4, BudgetUse::New(20)));
    assert!(matches!(
        again.await.unwrap(),
        ReservationOutcome::Existing(_)
    ));
    assert_eq!(store.payment_budget(key()).await.unwrap(), 1);
}

async fn a_budget_applies_only_to_its_session_host_and_user(store: Store) {
    let first = store.reserve_payment(for_host("first", 1, BudgetUse::New(20)));
    assert!(matches!(first.await.unwrap(), ReservationOutcome::New(_)));
    assert_eq!(store.payment_budget(key()).await.unwrap(), 19);
    let others = [
        BudgetKey {
            host: "example.org".into(),
            ..key()
        },
        BudgetKey {
            session: SessionId::from("s_2"),
            ..key()
        },
        BudgetKey {
            user: UserId::from("bob"),
            ..key()
        },
    ];
    for other in others {
        assert_eq!(store.payment_budget(other).await.unwrap(), 0);
    }
    let more = store.reserve_payment(for_host("more", 21, BudgetUse::New(20)));
    let limit = PaymentLimit::Budget;
    assert_eq!(
        more.await.unwrap(),
        ReservationOutcome::Refused { limit, left: 20 }
    );
}
