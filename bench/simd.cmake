quipu_add_bench(product_bench SOURCES product_bench.cpp LINK quipu::run)
foreach(stem IN ITEMS attention elementwise extents thread_pool)
  quipu_add_bench(${stem}_bench SOURCES ${stem}_bench.cpp LINK quipu::run)
endforeach()
