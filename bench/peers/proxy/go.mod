module weir/bench/peers/proxy

go 1.22
