//! What `observe` shows of pages.

use crate::support::Bench;
use lango_browser::{ObserveOptions, ObservedExtent, Page};

async fn look(page: &Page) -> String {
    page.observe(&ObserveOptions::default()).await.unwrap().text
}

#[tokio::test]
async fn explore() {
    let bench = Bench::new().await;
    let page = bench.show("<title>Shop</title><base href='https://shop.example/a/'>
    <nav><a href='/'>Home</a><a href='/docs/start'>Docs</a></nav>
    <h1>Offers</h1><h2><a href='x'>First</a></h2>
    <p>See the <a href='/docs'>docs</a> for more <b>details</b>.</p>
    <form><label for=m>Email</label><input id=m value='a@b'><label><input type=checkbox checked> I agree</label>
    <select><option value=DE selected>Germany<option>France<option>Italy</select>
    <input type=password value=secret placeholder='Password'><input type=range min=0 max=10 value=3 aria-label=Volume>
    <textarea placeholder=Note></textarea><div contenteditable>rich</div>
    <button disabled>Buy now</button></form>
    <div onclick='1' class=card>Click <i>me</i></div><div style='cursor:pointer'>Pointer</div>
    <svg width=50 height=50><circle cx=20 cy=20 r=10 fill=red onclick='1'></circle></svg>
    <canvas width=100 height=50></canvas>
    <span onclick='1' class='icon-close'></span>
    <div id=h></div><iframe srcdoc='<button>Inner</button><p>text</p>'></iframe>
    <table><tr><th>Name<th>Age<th></tr><tr><td>Bob<td>3<td><button>Edit</button></tr></table>
    <ul><li><a href='/p/1'>Shoe</a> <span>$5</span> <button>Add</button></li><li><a href='/p/2'>Hat</a> <span>$7</span> <button>Add</button></li></ul>
    <img src='data:,' alt='A cat'><details><summary>More</summary>hidden</details>
    <div style='height:100px;overflow:auto'><p style='height:500px'>tall</p></div>
    <div draggable=true>Drag me</div>
    <script>h.attachShadow({mode:'closed'}).innerHTML='<button>Shadow</button>'</script>").await;
    println!("{}", look(&page).await);
    println!("{}", look(&page).await);
    let options = ObserveOptions {
        extent: ObservedExtent::Whole,
        ..Default::default()
    };
    let t = std::time::Instant::now();
    println!("{}", page.observe(&options).await.unwrap().text);
    println!("{:?}", t.elapsed());
}
