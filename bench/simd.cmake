quipu_add_bench(product_bench SOURCES product_bench.cpp LINK quipu::run)
